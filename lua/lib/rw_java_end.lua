-- rw_java_end: takes the vote from a hold, and tells those who wait, as Redisson does. How that is
-- published, PUBLISH or SPUBLISH, is the first of ARGV, for all requests.
local publish = ARGV[1]

-- Takes the vote from a hold, and returns what was left of its lease: nil for a hold that has no
-- vote, or whose lease has ended. It touches no field of another hold: Java would take that for a
-- lost lock, and say nothing. The record ends with the last reader that has a lease. Then it is
-- announced that the lock is free: '0' wakes one waiter in each client in Java, '1' wakes all.
local function take_back(lock, stem, hold, channel)
  local mode, count = redis.call('HGET', lock, 'mode'), redis.call('HGET', lock, hold)
  if hold == 'mode' or not count then
    return nil
  end
  local reads = mode and not is_write(hold)
  local ms = reads and left_of(stem, hold, count) or redis.call('PTTL', lock)
  redis.call('HDEL', lock, hold)
  for entry = 1, reads and tonumber(count) or 0 do
    redis.call('DEL', timeout_of(stem, hold, entry))
  end
  local had = (ms >= 0 or not reads) and ms or nil
  if mode == 'write' and reads then
    -- It was under a write, which goes on.
    return had
  end
  local left, holds, counts = 0, holds_of(lock)
  for _, other in ipairs(holds) do
    left = math.max(left, left_of(stem, other, counts[other]))
  end
  if left == 0 then
    redis.call('DEL', lock)
    announce(publish, channel, reads and '0' or '1')
    return had
  end
  redis.call('PEXPIRE', lock, left)
  if not reads then
    -- It goes on as a read, and others may read too. Java tells nobody of that.
    redis.call('HSET', lock, 'mode', 'read')
    announce(publish, channel, '1')
  end
  return had
end
