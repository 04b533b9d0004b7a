-- enter: gives a place its ticket, and lets it count for `wait_ms` from now on.
local function enter(queue, alive, place, ticket, wait_ms)
  redis.call('ZADD', queue, ticket, place)
  redis.call('ZADD', alive, now_ms() + wait_ms, place)
  expire(queue, math.max(wait_ms, redis.call('PTTL', queue)))
  expire(alive, math.max(wait_ms, redis.call('PTTL', alive)))
end
