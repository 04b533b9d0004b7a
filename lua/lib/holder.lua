-- holder: the record of a hold that excludes all others is a hash with one field, the hold, and its
-- count. It expires with the lease.

-- Who has the vote, and its count. In the record of a RReadWriteLock of Redisson a field `mode`
-- stands before the holds.
local function holder(lock)
  local record = redis.call('HGETALL', lock)
  if record[1] == 'mode' and record[3] then
    return record[3], record[4]
  end
  return record[1], record[2]
end
