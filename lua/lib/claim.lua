-- claim: gives the vote to `hold` if nobody else has it; never shortens what is left of its lease.
-- `admit(has)` comes first: it may fail, and then nothing is given.
local function claim(lock, hold, count, lease_ms, admit)
  local by = redis.call('HKEYS', lock)[1]
  local ms = lease_ms
  if by == hold then
    ms = math.max(tonumber(ms), redis.call('PTTL', lock))
  elseif by then
    return 0, redis.call('PTTL', lock), by
  end
  local text = admit(by == hold)
  redis.call('HSET', lock, hold, count)
  expire(lock, ms)
  return 1, now_ms(), text or ''
end
