-- semaphore/inspect: tells who has which slots, who waits, and of how many permits it is; changes
-- nothing.
-- KEYS, for each request: slots, ends, queue, alive, permits
-- ARGV, for all requests: none
-- ARGV, for each request: none
-- returns, for each request: code, ms, id, count, more
--   1, 0, '', count, more    so many slots are taken
--   0, 0, '', 0, more        none is
--   -1, 0, message, '', ''   this request failed, alone
--   more: a list of who holds, a list of who waits, and the fewest permits that anybody asked with
--   of late, '' where none is known; in the lists, for each slot in order, and for each place in
--   order: the hold and its slot, or the place and its ticket, and for how long it counts in ms
-- atomic, because holders, leases and queue must belong together.
local function inspect(key)
  local slots, ends, queue, alive, permits = unpack(KEYS, key + 1, key + 5)
  local held, waiting = {}, {}
  local members = redis.call('ZRANGE', slots, 0, -1, 'WITHSCORES')
  for at = 1, #members, 2 do
    local ms = tonumber(redis.call('ZSCORE', ends, members[at]) or 0) - now_ms()
    if ms >= 0 then
      list(held, hold_of(members[at]), tonumber(members[at + 1]), ms)
    end
  end
  for place, ticket, ms in places(queue, alive) do
    list(waiting, place, ticket, ms)
  end
  local taken = #held / 3
  local fewest_known = string.match(latest(permits), '^%d+') or ''
  return math.min(taken, 1), 0, '', taken, { held, waiting, fewest_known }
end

return each(5, 0, 0, 5, inspect)
