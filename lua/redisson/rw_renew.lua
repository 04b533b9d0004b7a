-- redisson/rw_renew: keeps the vote in an RReadWriteLock of Redisson, or says that the hold has
-- none; sets a write's count, and its token where the voter knows a lower one.
-- KEYS, for each request: lock, stem, revoked, fence
-- ARGV, for all requests: lease_ms, keep_ms
-- ARGV, for each request: hold, count, token, anew
--   stem: what the keys of readers begin with; token: '' for none; keep_ms: how long the fence is
--   remembered; anew '1': the hold is given the vote where nobody is in the way
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
