-- claim: gives the vote to `hold` if nobody else has it; never shortens what is left of its lease.
-- `admit(has)` says what a vote is given with; where it fails, no new one is given. Keeping a vote
-- begins with PEXPIRE: a server that is full refuses a script's first write where that could take
-- memory, and no later one.
local function claim(lock, hold, count, lease_ms, admit)
  local by = redis.call('HKEYS', lock)[1]
  if by and by ~= hold then
    return 0, redis.call('PTTL', lock), by
  end
  if by then
    redis.call('PEXPIRE', lock, math.max(tonumber(lease_ms), redis.call('PTTL', lock)))
  end
  local text = admit(by == hold)
  if not by then
    redis.call('HSET', lock, hold, count)
    expire(lock, lease_ms)
  elseif redis.call('HGET', lock, hold) ~= count then
    redis.call('HSET', lock, hold, count)
  end
  return 1, now_ms(), text or ''
end
