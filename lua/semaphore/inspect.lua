-- semaphore/inspect: tells who has which slots, who waits, and of how many permits it is; changes
-- nothing.
-- KEYS, for each request: slots, ends, queue, alive, permits
-- ARGV, for all requests: none
-- ARGV, for each request: from
--   from: the first slot to list; waiters are listed only from 0
-- returns, for each request: code, ms, id, next, more
--   1, 0, '', next, more     some of these slots are taken; next: from where on there may be more,
--                            0 where there are none
--   0, 0, '', next, more     none is
--   -1, 0, message, '', ''   this request failed, alone
--   more: a list of who holds, a list of who waits, and the fewest permits that anybody asked with
--   of late, '' where none is known; in the lists, for each slot in order, and for each place in
--   order: the hold and its slot, or the place and its ticket, and for how long it counts in ms
-- atomic, because holders, leases and queue must belong together.
local MOST = 256

local function inspect(key, args, arg)
  local slots, ends, queue, alive, permits = unpack(KEYS, key + 1, key + 5)
  local from = args[arg + 1]
  local held, waiting, next_from = {}, {}, 0
  local rank = redis.call('ZCOUNT', slots, '-inf', '(' .. from)
  local members = redis.call('ZRANGE', slots, rank, rank + MOST - 1, 'WITHSCORES')
  for at = 1, #members, 2 do
    local ms = tonumber(redis.call('ZSCORE', ends, members[at]) or 0) - now_ms()
    if ms >= 0 then
      list(held, hold_of(members[at]), tonumber(members[at + 1]), ms)
    end
  end
  if #members == 2 * MOST then
    next_from = tonumber(members[#members]) + 1
  end
  if from == '0' then
    for place, ticket, ms in places(queue, alive) do
      list(waiting, place, ticket, ms)
    end
  end
  local fewest_known = string.match(latest(permits), '^%d+') or ''
  return math.min(#held, 1), 0, '', next_from, { held, waiting, fewest_known }
end

return each(5, 0, 1, 5, inspect)
