-- rw: one writer, or readers with a deadline each. `readers` has until when each of them counts, by
-- this voter's clock, and expires with the last. A hold `<write hold>/<number>` reads under its own
-- owner's write. `writers` has those of the queue that wait to write.
local function write_of(hold)
  return string.match(hold, '^(.+)/%d+$')
end

-- Takes out the readers whose leases have ended.
local function sweep_readers(readers)
  for _, hold in ipairs(redis.call('ZRANGEBYSCORE', readers, '-inf', '(' .. now_ms())) do
    redis.call('ZREM', readers, hold)
  end
end

-- The last reader to end, of those that do not read under `write`, and what is left of its lease.
local function last_reader(readers, write)
  local at = 0
  repeat
    at = at - 1
    local last = redis.call('ZRANGE', readers, at, at, 'WITHSCORES')
    if last[1] and not (write and write_of(last[1]) == write) then
      return last[1], tonumber(last[2]) - now_ms()
    end
  until not last[1]
end

-- Who has the vote so that `hold` cannot have it too, and what is left of its lease; or neither,
-- and who writes so that it has, with its count.
local function in_the_way(writer, readers, hold, mode)
  local by, count = holder(writer)
  if by and by ~= hold and by ~= write_of(hold) then
    return by, redis.call('PTTL', writer)
  end
  if mode == 'write' and by ~= hold then
    return last_reader(readers, hold)
  end
  return nil, nil, by, count
end

-- Gives the vote to a reader, unless it is `only_kept` and the reader has none: says whether it has
-- it now. Never shortens what is left of its lease, and touches no other's. The key ends with the
-- last of its readers. Keeping a vote begins with PEXPIREAT, as in `keep`.
local function share(readers, hold, lease_ms, only_kept)
  local now, former = now_ms(), redis.call('ZSCORE', readers, hold)
  local ends = math.max(now + lease_ms, tonumber(former or 0))
  if former then
    redis.call('PEXPIREAT', readers, math.max(ends, now + redis.call('PTTL', readers)))
    redis.call('ZADD', readers, ends, hold)
    return true
  end
  if only_kept then
    return false
  end
  redis.call('ZADD', readers, ends, hold)
  if redis.call('PTTL', readers) < ends - now then
    local done = redis.pcall('PEXPIREAT', readers, ends)
    if type(done) == 'table' and done.err then
      redis.call('ZREM', readers, hold)
      error(done.err, 0)
    end
  end
  return true
end

-- A reader whose lease ends then has gone: the key ends with the last of those that are left, and
-- does so already where one of them ends as late.
local function refit(readers, ends)
  if redis.call('ZCOUNT', readers, ends, '+inf') == 0 then
    local _, ms = last_reader(readers)
    if ms then
      redis.call('PEXPIREAT', readers, now_ms() + math.max(ms, 1))
    end
  end
end

-- Takes the vote from a hold, if it has it: says how it had it, and what was left of its lease. A
-- read whose lease has ended had none.
local function take_back(writer, readers, hold)
  local ends = redis.call('ZSCORE', readers, hold)
  if ends then
    local ms = tonumber(ends) - now_ms()
    redis.call('ZREM', readers, hold)
    refit(readers, ends)
    if ms >= 0 then
      return 'read', ms
    end
  end
  if redis.call('HEXISTS', writer, hold) == 1 then
    local ms = redis.call('PTTL', writer)
    redis.call('DEL', writer)
    return 'write', ms
  end
end
