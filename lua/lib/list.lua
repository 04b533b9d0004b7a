-- list: who waits, who reads and the latest token, for those who inspect a lock.

-- The number of the latest hold; '' where there is none, or none that a script has written.
local function latest(fence)
  local number = redis.pcall('GET', fence)
  return type(number) == 'string' and number or ''
end

-- Adds an entry of three to a flat list.
local function list(entries, id, number, ms)
  local at = #entries
  entries[at + 1], entries[at + 2], entries[at + 3] = id, number, ms
end

-- The places in a queue that count still, in order, each with its ticket and for how long it does.
local function places(queue, alive)
  local all, at = redis.call('ZRANGE', queue, 0, -1, 'WITHSCORES'), -1
  return function()
    while true do
      at = at + 2
      local place, ticket = all[at], all[at + 1]
      if not place then
        return nil
      end
      local ms = tonumber(redis.call('ZSCORE', alive, place) or 0) - now_ms()
      if ms > 0 then
        return place, tonumber(ticket), ms
      end
    end
  end
end
