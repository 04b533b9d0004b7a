-- enter: gives a place its ticket, and lets it count for `wait_ms` from now on.

-- Puts a member into a set that lasts for `ms` at least, and never stands without an end. Where the
-- set is there, this passes on a server that is full.
local function put(key, score, member, ms)
  local stands = redis.call('PEXPIRE', key, math.max(ms, redis.call('PTTL', key))) == 1
  redis.call('ZADD', key, score, member)
  if not stands then
    expire(key, ms)
  end
end

local function enter(queue, alive, place, ticket, wait_ms)
  put(queue, ticket, place, wait_ms)
  put(alive, now_ms() + wait_ms, place, wait_ms)
end
