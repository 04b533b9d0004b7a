-- mutex/inspect: tells who has the vote, who waits and the latest token; changes nothing.
-- KEYS, for each request: lock, queue, alive, fence
-- ARGV, for all requests: none
-- ARGV, for each request: none
-- returns, for each request: code, ms, id, count, more
--   1, lease left in ms, holder, count, more   held (-1 ms: the record has no expiry)
--   0, -2, '', 0, more                         free
--   -1, 0, message, '', ''                     this request failed, alone
--   more: a list of who waits, and the token of the latest hold, '' where none is known; in the
--   list, for each place that waits, in order: place, ticket, for how long it counts in ms
-- atomic, because holder, count, lease and queue must belong together.
local function inspect(key)
  local lock, queue, alive, fence = unpack(KEYS, key + 1, key + 4)
  local by, count = holder(lock)
  local waiting = {}
  for place, ticket, ms in places(queue, alive) do
    if place ~= (by and place_of(by)) then
      list(waiting, place, ticket, ms)
    end
  end
  local more = { waiting, latest(fence) }
  if not by then
    return 0, -2, '', 0, more
  end
  return 1, redis.call('PTTL', lock), by, tonumber(count) or 0, more
end

return each(4, 0, 0, 5, inspect)
