-- redisson/rw_renew: keeps the vote in an RReadWriteLock of Redisson, or takes it again on a voter
-- that lost its data; sets a write's count, and its token where the voter knows a lower one.
-- KEYS, for each request: lock, stem, revoked, fence
-- ARGV, for all requests: lease_ms, keep_ms
-- ARGV, for each request: hold, count, token
--   stem: what the keys of readers begin with; token: '' for none; keep_ms: how long the fence is
--   remembered
-- returns, for each request: code, ms, id, anew
--   1, this voter's clock, '', anew  granted; the clock in ms since 1970; anew 0 where the hold had
--                                    the vote, 1 where it had not
--   0, time left in ms, holder, 0    refused: who writes, or one of those who read
--   2, 0, '', 0                      the hold was ended by force and gets no vote again
--   -1, 0, message, ''               this request failed, alone
-- atomic, because a forced release between the check and the grant would be undone by it.
local lease_ms, keep_ms = unpack(ARGV, 1, 2)

local function rw_renew(key, args, arg)
  local lock, stem, revoked, fence = unpack(KEYS, key + 1, key + 4)
  local hold, count, token = unpack(args, arg + 1, arg + 3)
  if redis.call('HEXISTS', revoked, hold) == 1 then
    return 2, 0, '', 0
  end
  local by, ms = in_the_way(lock, hold)
  if by then
    return 0, ms, by, 0
  end
  if not is_write(hold) then
    local had = share(lock, stem, hold, lease_ms)
    return 1, now_ms(), '', had and 0 or 1
  end
  local entered = redis.call('HGET', lock, hold)
  return renew_only(lock, fence, lease_ms, keep_ms, hold, count, token, entered, entered)
end

return each(4, 2, 3, 4, rw_renew)
