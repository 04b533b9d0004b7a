-- rw_java_give: gives the vote to a hold that nobody is in the way of, and keeps it.

-- Keeps the record; never shortens what is left of its time. To be the first write of a script, as
-- in a mutex: a server that is full refuses none that follows.
local function keep(lock, lease_ms)
  redis.call('PEXPIRE', lock, math.max(tonumber(lease_ms), redis.call('PTTL', lock)))
end

-- Gives a vote that nobody has to one who writes.
local function give(lock, hold, count, lease_ms)
  redis.call('HSET', lock, 'mode', 'write', hold, count)
  expire(lock, lease_ms)
end

-- Gives the vote to a reader, or keeps it; if it is `only_kept` and the reader has none, neither.
-- Says whether it has it now. Its key is the first to be written and the last to end: a field
-- without it is a reader that has died.
local function share(lock, stem, hold, lease_ms, only_kept)
  local timeout = timeout_of(stem, hold, 1)
  local ms = math.max(tonumber(lease_ms), redis.call('PTTL', timeout))
  if redis.call('HEXISTS', lock, hold) == 1 and redis.call('PEXPIRE', timeout, ms) == 1 then
    keep(lock, ms)
    return true
  end
  if only_kept then
    return false
  end
  redis.call('SET', timeout, 1, 'PX', ms)
  if redis.call('EXISTS', lock) == 1 then
    redis.call('HSET', lock, hold, 1)
    keep(lock, ms)
  else
    redis.call('HSET', lock, 'mode', 'read', hold, 1)
    expire(lock, ms)
  end
  return true
end
