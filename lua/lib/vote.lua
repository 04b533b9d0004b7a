-- vote: gives the vote to one who excludes all others, and keeps it. What came as a
-- text is passed on as one: a server takes long to write a number.

-- Keeps a vote; never shortens what is left of its lease. To be the first write of a script: a
-- server that is full refuses that where it could take memory, and none that follows.
local function keep(lock, lease_ms)
  local left = redis.call('PTTL', lock)
  redis.call('PEXPIRE', lock, left > tonumber(lease_ms) and left or lease_ms)
end

-- Gives a vote that nobody has.
local function give(lock, hold, count, lease_ms)
  redis.call('HSET', lock, hold, count)
  expire(lock, lease_ms)
end
