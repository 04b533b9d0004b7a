-- rw_java: the record of an RReadWriteLock of Redisson is a hash. `mode` is 'read' or 'write'. Each
-- who reads has a field with its count, and who writes has `<owner>:write`. Each entry of a reader
-- has a key that expires with its lease: `<stem>:<reader>:rwlock_timeout:<entry>`. Each hold of
-- ours is one field: `<write>/<number>` reads under its own owner's write.
local function is_write(hold)
  return string.find(hold, ':write', -6, true) ~= nil
end

local function write_of(hold)
  return string.match(hold, '^(.+)/%d+$')
end

local function timeout_of(stem, reader, entry)
  return stem .. ':' .. reader .. ':rwlock_timeout:' .. entry
end

-- What is left of the lease of a reader with this count; below 0 where it has ended.
local function left_of(stem, reader, count)
  local ms = -2
  for entry = 1, tonumber(count) or 0 do
    ms = math.max(ms, redis.call('PTTL', timeout_of(stem, reader, entry)))
  end
  return ms
end

-- All fields but `mode`, in order, and their counts.
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

-- Who writes, or else one of those who read; and its count.
local function holder_of(lock)
  local holds, counts = holds_of(lock)
  for _, hold in ipairs(holds) do
    if is_write(hold) then
      return hold, counts[hold]
    end
  end
  return holds[1], counts[holds[1] or '']
end

-- Who has the vote so that `hold` cannot have it too, and what is left of its lease. As strict as
-- Redisson. A record without a mode is that of another kind of lock: Java's readers join it, ours
-- do not.
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
