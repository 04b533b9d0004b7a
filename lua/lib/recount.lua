-- recount: sets the count of a hold that excludes all others, where it has the vote: what is left
-- of its lease then.
local function recount(lock, hold, count)
  if redis.call('HEXISTS', lock, hold) == 0 then
    return nil
  end
  local ms = redis.call('PTTL', lock)
  if ms > 0 then
    -- Changes nothing: after a first write a server that is full refuses no other.
    redis.call('PEXPIRE', lock, ms)
  end
  redis.call('HSET', lock, hold, count)
  return ms
end
