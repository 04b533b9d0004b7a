-- mutex/inspect: tells who has the vote and who waits for it; changes nothing.
-- KEYS, for each request: lock, queue, alive
-- ARGV, for all requests: none
-- ARGV, for each request: none
-- returns, for each request: code, ms, id, count, waiting
--   1, lease left in ms, holder, count, waiting   held (-1 ms: the record has no expiry)
--   0, -2, '', 0, waiting                         free
--   -1, 0, message, '', ''                        this request failed, alone
--   waiting: for each place that waits, in order: place, ticket, for how long it counts in ms
-- atomic, because holder, count, lease and queue must belong together.
local function inspect(key)
  local lock, queue, alive = unpack(KEYS, key + 1, key + 3)
  local by, count = holder(lock)
  local waiting = {}
  for place, ticket, ms in places(queue, alive) do
    if place ~= (by and place_of(by)) then
      list(waiting, place, ticket, ms)
    end
  end
  if not by then
    return 0, -2, '', 0, waiting
  end
  return 1, redis.call('PTTL', lock), by, tonumber(count) or 0, waiting
end

return each(3, 0, 0, 5, inspect)
