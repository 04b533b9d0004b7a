-- rw/inspect: tells who has the vote and who waits for it; changes nothing.
-- KEYS, for each request: writer, readers, queue, alive, writers
-- ARGV, for each request: none
-- returns, for each request: code, ms, text
--   count, lease left in ms, lists .. writer   somebody writes (-1 ms: the record has no expiry)
--   0, -2, lists                               nobody does
--   -1, 0, message                             this request failed, alone
--   lists: those that hold to read, wait to write and wait to read; each a line with their number,
--   and for each of them, in order, a line `ticket ms hold` or `ticket ms place` (0 of a hold)
-- atomic, because holders, leases and queue must belong together.
local function list(entries)
  return #entries .. '\n' .. table.concat(entries, '\n') .. (#entries > 0 and '\n' or '')
end

local function line(ticket, ms, id)
  return table.concat({ ticket, string.format('%.0f', ms), id }, ' ')
end

local function inspect(writer, readers, queue, alive, writers)
  local by, now, held = redis.call('HKEYS', writer)[1], now_ms(), {}
  local reading, to_write, to_read = {}, {}, {}
  local holds = redis.call('ZRANGE', readers, 0, -1, 'WITHSCORES')
  for at = 1, #holds, 2 do
    local hold, ms = holds[at], tonumber(holds[at + 1]) - now
    if ms >= 0 then
      reading[#reading + 1] = line('0', ms, hold)
      held[place_of(hold) or ''] = true
    end
  end
  held[by and place_of(by) or ''] = true
  local places = redis.call('ZRANGE', queue, 0, -1, 'WITHSCORES')
  for at = 1, #places, 2 do
    local place, ticket = places[at], places[at + 1]
    local ms = tonumber(redis.call('ZSCORE', alive, place) or 0) - now
    if ms > 0 and not held[place] then
      local waiting = redis.call('ZSCORE', writers, place) and to_write or to_read
      waiting[#waiting + 1] = line(ticket, ms, place)
    end
  end
  local lists = list(reading) .. list(to_write) .. list(to_read)
  if not by then
    return 0, -2, lists
  end
  return tonumber(redis.call('HGET', writer, by)), redis.call('PTTL', writer), lists .. by
end

return each(5, 0, inspect)
