-- Locks that are shared with Java programs: a question about theirs, and the read/write lock in
-- their format.

----
-- rw_java: the record of an RReadWriteLock of Redisson is a hash. `mode` is 'read' or 'write'. Each
-- reader has a field with its count, and the writer has `<owner>:write`. Each entry of a reader has
-- a key that expires with its lease: `<stem>:<reader>:rwlock_timeout:<entry>`. Each hold of ours is
-- one field: `<write>/<number>` reads under its own owner's write.
local function is_write(hold)
  return string.find(hold, ':write', -6, true) ~= nil
end

local function write_of(hold)
  return string.match(hold, '^(.+)/%d+$')
end

local function timeout_of(stem, reader, entry)
  return stem .. ':' .. reader .. ':rwlock_timeout:' .. entry
end

-- What is left of the lease of a reader with this count; below 0 if it has ended.
local function left_of(stem, reader, count)
  local ms = -2
  for entry = 1, tonumber(count) or 0 do
    ms = math.max(ms, redis.call('PTTL', timeout_of(stem, reader, entry)))
  end
  return ms
end

-- All fields but `mode`, and their counts. In order, so that all voters name the same of several
-- readers.
local function holds_of(lock)
  local record, holds, counts = redis.call('HGETALL', lock), {}, {}
  for at = 1, #record, 2 do
    if record[at] ~= 'mode' then
      holds[#holds + 1] = record[at]
      counts[record[at]] = record[at + 1]
    end
  end
  table.sort(holds)
  return holds, counts
end

-- The writer, or else one of the readers, and its count.
local function holder_of(lock)
  local holds, counts = holds_of(lock)
  for _, hold in ipairs(holds) do
    if is_write(hold) then
      return hold, counts[hold]
    end
  end
  return holds[1], counts[holds[1] or '']
end

-- The hold that keeps `hold` from having the vote, and what is left of its lease. As strict as
-- Redisson. A record without a mode is of another kind of lock: Java joins it, our holds do not.
local function in_the_way(lock, hold)
  local mode = redis.call('HGET', lock, 'mode')
  if mode == 'read' and not is_write(hold) then
    return nil
  end
  local write = is_write(hold) and hold or write_of(hold) or ''
  if mode == 'write' and redis.call('HEXISTS', lock, write) == 1 then
    return nil
  end
  local by = holder_of(lock) or mode
  if by then
    return by, redis.call('PTTL', lock)
  end
end

----
-- rw_java_give: gives the vote to a hold if nobody is in its way, and keeps it.

-- Keeps the record, and never shortens its time. To be the first write of a script, as in a mutex:
-- a full server refuses none that follows.
local function keep(lock, lease_ms)
  redis.call('PEXPIRE', lock, math.max(tonumber(lease_ms), redis.call('PTTL', lock)))
end

-- Gives a vote that nobody has to a writer.
local function give(lock, hold, count, lease_ms)
  redis.call('HSET', lock, 'mode', 'write', hold, count)
  expire(lock, lease_ms)
end

-- Gives the vote to a reader, or with `only_kept` only keeps it. Returns whether the reader has it
-- now. Its key is written first and ends last: Java takes a field without it for a reader that has
-- died.
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

----
-- rw_java_end: takes the vote from a hold, and publishes that for waiters, as Redisson does. The
-- command for that, PUBLISH or SPUBLISH, is the first of ARGV, for all requests.
local publish = ARGV[1]

-- Takes the vote from a hold. Returns what was left of its lease: nil for a hold without a vote, or
-- whose lease has ended. It touches no field of another hold: Java would take that for a lost lock,
-- without a message. The record ends with the last reader that has a lease. Then it publishes that
-- the lock is free: '0' wakes one waiter in each Java client, '1' wakes all.
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
    -- The read was under a write, which goes on.
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
    -- The lock goes on as a read, and others may read too. Java publishes nothing in this case.
    redis.call('HSET', lock, 'mode', 'read')
    announce(publish, channel, '1')
  end
  return had
end

----
-- redisson/queue: returns whether somebody waits for an RFairLock of Redisson; changes nothing.
-- libraries: each
-- KEYS, for each request: waiting, timeouts
-- ARGV, for all requests: none
-- ARGV, for each request: none
-- returns, for each request: code, ms, id
--   1, 0, ''         somebody waits, or did and left this behind
--   0, 0, ''         nobody
--   -1, 0, message   this request failed, alone
-- atomic, because those who wait are in both keys or in neither.
local function queue(key)
  local waiting, timeouts = unpack(KEYS, key + 1, key + 2)
  return math.min(redis.call('EXISTS', waiting, timeouts), 1), 0, ''
end

return each(2, 0, 0, 3, queue)

----
-- redisson/rw_acquire: requests the vote in an RReadWriteLock of Redisson, to read or to write. As
-- in Java, there is no queue, and readers pass waiting writers.
-- libraries: expire, time, fence, rw_java, rw_java_give, each
-- KEYS, for each request: lock, stem, fence
-- ARGV, for all requests: lease_ms, keep_ms
-- ARGV, for each request: hold, floor
--   stem: the beginning of the keys of readers
--   floor: the least the token of a write may be, '' for none; keep_ms: how long the fence is kept
-- returns, for each request: code, ms, id, token
--   1, this voter's clock, '', token  granted; the clock in ms since 1970; token '' of a read
--   0, time left in ms, holder, ''    refused: who writes, or one of those who read (-1 ms: the
--                                     record has no expiry)
--   -1, 0, message, ''                this request failed, alone
-- atomic, because two that look before either has entered would both be let in.
local lease_ms, keep_ms = unpack(ARGV, 1, 2)

local function rw_acquire(key, args, arg)
  local lock, stem, fence = unpack(KEYS, key + 1, key + 3)
  local hold, floor = unpack(args, arg + 1, arg + 2)
  local by, ms = in_the_way(lock, hold)
  if by then
    return 0, ms, by, ''
  end
  if not is_write(hold) then
    share(lock, stem, hold, lease_ms)
    return 1, now_ms(), '', ''
  end
  if redis.call('EXISTS', lock) == 1 then
    keep(lock, lease_ms)
    return 1, now_ms(), '', number_again(fence, floor, keep_ms)
  end
  local token = number(fence, floor, keep_ms)
  give(lock, hold, '1', lease_ms)
  return 1, now_ms(), '', token
end

return each(3, 2, 2, 4, rw_acquire)

----
-- redisson/rw_renew: keeps the vote in an RReadWriteLock of Redisson, or answers that the hold has
-- none; sets the count of a write, and its token if the voter has a lower one.
-- libraries: expire, time, fence, rw_java, rw_java_give, renew, each
-- KEYS, for each request: lock, stem, revoked, fence
-- ARGV, for all requests: lease_ms, keep_ms
-- ARGV, for each request: hold, count, token, anew
--   stem: the beginning of the keys of readers; token: '' for none; keep_ms: how long the fence is
--   kept; anew '1': the hold gets the vote if nobody is in the way
-- returns, for each request: code, ms, id
--   1, this voter's clock, ''     granted; the clock in ms since 1970
--   0, time left in ms, holder    refused: who writes, or one of those who read
--   2, 0, ''                      the hold was ended by force and gets no vote again
--   4, 0, ''                      the hold has no vote, and it was not given
--   -1, 0, message                this request failed, alone
-- atomic, because a forced release between the check and the grant would be undone by it.
local lease_ms, keep_ms = unpack(ARGV, 1, 2)

local function rw_renew(key, args, arg)
  local lock, stem, revoked, fence = unpack(KEYS, key + 1, key + 4)
  local hold, count, token, anew = unpack(args, arg + 1, arg + 4)
  if redis.call('HEXISTS', revoked, hold) == 1 then
    return 2, 0, ''
  end
  local by, ms = in_the_way(lock, hold)
  if by then
    return 0, ms, by
  end
  if not is_write(hold) then
    if share(lock, stem, hold, lease_ms, anew == '') then
      return 1, now_ms(), ''
    end
    return 4, 0, ''
  end
  local entered = redis.call('HGET', lock, hold)
  return renew_only(lock, fence, lease_ms, keep_ms, hold, count, token, entered, entered, anew)
end

return each(4, 2, 4, 3, rw_renew)

----
-- redisson/rw_release: sets the count of a write in an RReadWriteLock of Redisson; at 0 gives the
-- vote back, and publishes if the lock is free now, or free for readers.
-- libraries: recount, rw_java, publish, rw_java_end, each
-- KEYS, for each request: lock, stem
-- ARGV, for all requests: publish
-- ARGV, for each request: hold, count, channel
--   stem: the beginning of the keys of readers
-- returns, for each request: code, ms, id
--   1, lease left in ms, ''      done (0 ms: given back)
--   0, time left in ms, holder   this hold has no vote here (-2 ms and '': nobody has)
--   -1, 0, message               this request failed, alone
-- atomic, because the vote may have passed to another hold since the caller looked.
local function rw_release(key, args, arg)
  local lock, stem = unpack(KEYS, key + 1, key + 2)
  local hold, count, channel = unpack(args, arg + 1, arg + 3)
  local ms
  if count == '0' then
    ms = take_back(lock, stem, hold, channel) and 0
  elseif is_write(hold) then
    ms = recount(lock, hold, count)
  else
    local left = left_of(stem, hold, redis.call('HGET', lock, hold) or 0)
    ms = left >= 0 and left
  end
  if ms then
    return 1, ms, ''
  end
  return 0, redis.call('PTTL', lock), holder_of(lock) or ''
end

return each(2, 1, 3, 3, rw_release)

----
-- redisson/rw_force_release: ends one named hold of an RReadWriteLock of Redisson, whoever asks.
-- Stores that, so that no renewal of ours brings it back.
-- libraries: expire, time, mark_ended, rw_java, publish, rw_java_end, each
-- KEYS, for each request: lock, stem, revoked
-- ARGV, for all requests: publish
-- ARGV, for each request: hold, marker_ms, channel
--   stem: the beginning of the keys of readers
-- returns, for each request: code, ms, id
--   1, lease taken away in ms, ''   the hold had the vote, and has it no more
--   0, time left in ms, holder      marked; the hold had no vote here (-2 ms and '': nobody has)
--   -1, 0, message                  this request failed, alone
-- atomic, because a renewal between the mark and the deletion would leave one without the other.
local function rw_force_release(key, args, arg)
  local lock, stem, revoked = unpack(KEYS, key + 1, key + 3)
  local hold, marker_ms, channel = unpack(args, arg + 1, arg + 3)
  mark_ended(revoked, hold, marker_ms)
  local had = take_back(lock, stem, hold, channel)
  if had then
    return 1, had, ''
  end
  return 0, redis.call('PTTL', lock), holder_of(lock) or ''
end

return each(3, 1, 3, 3, rw_force_release)

----
-- redisson/rw_clear: removes what is no record of an RReadWriteLock of Redisson; leaves holds and
-- token.
-- libraries: clear, each
-- KEYS, for each request: lock, revoked, fence
-- ARGV, for all requests: none
-- ARGV, for each request: none
-- returns, for each request: code, ms, id
--   1, 0, ''         something was removed
--   0, 0, ''         there was nothing
--   -1, 0, message   this request failed, alone
-- atomic, because what is written between a look and its deletion would be lost.
local function rw_clear(key)
  local lock, revoked, fence = unpack(KEYS, key + 1, key + 3)
  local mode, gone = readable('HGET', lock, 'mode')
  if mode ~= 'read' and mode ~= 'write' then
    gone = gone + wipe(lock)
  end
  gone = gone + keep_type('HEXISTS', revoked, '') + keep_type('GET', fence)
  return math.min(gone, 1), 0, ''
end

return each(3, 0, 0, 3, rw_clear)

----
-- redisson/rw_inspect: returns who has the vote in an RReadWriteLock of Redisson, and the latest
-- token of ours; changes nothing.
-- libraries: time, rw_java, list, each
-- KEYS, for each request: lock, stem, fence
-- ARGV, for all requests: none
-- ARGV, for each request: none
--   stem: the beginning of the keys of readers
-- returns, for each request: code, ms, id, count, more
--   1, lease left in ms, writer, count, more   somebody writes (-1 ms: the record has no expiry)
--   0, -2, '', 0, more                         nobody does
--   -1, 0, message, '', ''                     this request failed, alone
--   more: as in rw/inspect, with an empty queue; a record without a mode is of another kind of
--   lock, and its holder is listed as a writer
-- atomic, because holders and leases must belong together.
local function rw_inspect(key)
  local lock, stem, fence = unpack(KEYS, key + 1, key + 3)
  local mode, holds, counts = redis.call('HGET', lock, 'mode'), holds_of(lock)
  local by, reading = nil, {}
  for _, hold in ipairs(holds) do
    if not mode or is_write(hold) then
      by = hold
    else
      local ms = left_of(stem, hold, counts[hold])
      if ms >= 0 then
        list(reading, hold, 0, ms)
      end
    end
  end
  if not by and #reading == 0 then
    -- All readers are dead, but nobody gets to write while the record is there. So they are listed.
    for _, hold in ipairs(holds) do
      list(reading, hold, 0, 0)
    end
  end
  local more = { reading, {}, {}, latest(fence) }
  if not by then
    return 0, -2, '', 0, more
  end
  return 1, redis.call('PTTL', lock), by, tonumber(counts[by]) or 0, more
end

return each(3, 0, 0, 5, rw_inspect)
