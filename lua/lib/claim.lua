-- claim: gives the vote to `hold` if nobody else has it; never shortens what is left of its lease.
local function claim(lock, hold, count, lease_ms)
  local by = redis.call('HKEYS', lock)[1]
  local ms = tonumber(lease_ms)
  if by == hold then
    ms = math.max(ms, redis.call('PTTL', lock))
  elseif by then
    return 0, redis.call('PTTL', lock), by
  end
  redis.call('HSET', lock, hold, count)
  expire(lock, ms)
  return 1, ms, ''
end
