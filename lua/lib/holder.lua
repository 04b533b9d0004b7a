-- holder: the record of a hold that excludes all others is a hash with one field, the hold, and its
-- count. It expires with the lease.

-- Who has the vote, and its count.
local function holder(lock)
  local record = redis.call('HGETALL', lock)
  return record[1], record[2]
end
