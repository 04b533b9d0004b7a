-- rw/inspect: tells who has the vote, who waits and the latest token; changes nothing.
-- KEYS, for each request: writer, readers, queue, alive, writers, fence
-- ARGV, for all requests: none
-- ARGV, for each request: none
-- returns, for each request: code, ms, id, count, more
--   1, lease left in ms, writer, count, more   somebody writes (-1 ms: the record has no expiry)
--   0, -2, '', 0, more                         nobody does
--   -1, 0, message, '', ''                     this request failed, alone
--   more: lists of those that hold to read, wait to write and wait to read, and the token of the
--   latest write, '' where none is known; in a list, for each of them, in order, the hold or place,
--   its ticket (0 of a hold), and for how long it counts in ms
-- atomic, because holders, leases and queue must belong together.
local function inspect(key)
  local writer, readers, queue, alive, writers, fence = unpack(KEYS, key + 1, key + 6)
  local by, count = holder(writer)
  local held, reading, to_write, to_read = {}, {}, {}, {}
  local holds = redis.call('ZRANGE', readers, 0, -1, 'WITHSCORES')
  for at = 1, #holds, 2 do
    local hold, ms = holds[at], tonumber(holds[at + 1]) - now_ms()
    if ms >= 0 then
      list(reading, hold, 0, ms)
      held[place_of(hold) or ''] = true
    end
  end
  held[by and place_of(by) or ''] = true
  for place, ticket, ms in places(queue, alive) do
    if not held[place] then
      list(redis.call('ZSCORE', writers, place) and to_write or to_read, place, ticket, ms)
    end
  end
  local more = { reading, to_write, to_read, latest(fence) }
  if not by then
    return 0, -2, '', 0, more
  end
  return 1, redis.call('PTTL', writer), by, tonumber(count) or 0, more
end

return each(6, 0, 0, 5, inspect)
