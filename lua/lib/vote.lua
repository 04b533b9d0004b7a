-- vote: gives the vote to one who excludes all others, and keeps it.

-- Keeps a vote; never shortens what is left of its lease. To be the first write of a script: a
-- server that is full refuses that where it could take memory, and none that follows.
local function keep(lock, lease_ms)
  redis.call('PEXPIRE', lock, math.max(tonumber(lease_ms), redis.call('PTTL', lock)))
end

-- Gives a vote that nobody has.
local function give(lock, hold, count, lease_ms)
  redis.call('HSET', lock, hold, count)
  expire(lock, lease_ms)
end
