-- redisson/rw_force_release: ends one named hold of an RReadWriteLock of Redisson, whoever asks,
-- and marks it: no renewal of ours brings it back.
-- KEYS, for each request: lock, stem, revoked
-- ARGV, for all requests: publish
-- ARGV, for each request: hold, marker_ms, channel
--   stem: what the keys of readers begin with
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
