-- redisson/rw_release: sets a write's count in an RReadWriteLock of Redisson; at 0 gives the vote
-- back, and tells those who wait if it is free, or free to be read, now.
-- KEYS, for each request: lock, stem
-- ARGV, for all requests: publish
-- ARGV, for each request: hold, count, channel
--   stem: what the keys of readers begin with
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
