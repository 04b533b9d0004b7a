-- mutex/renew: keeps the vote, or says that nobody has it; sets the count. In full it also refuses
-- a hold that was ended by force, and keeps the token, which it sets where the voter knows a lower
-- one; in brief only where the hold has no vote with this count.
-- KEYS, for each request: lock, revoked, fence
-- ARGV, for all requests: lease_ms, keep_ms
-- ARGV, for each request: hold, count, token, known, anew
--   token: '' for none; keep_ms: how long the fence is remembered; known '1': in brief; anew '1':
--   the hold is given the vote where nobody has it
-- returns, for each request: code, ms, id
--   1, this voter's clock, ''     granted; the clock in ms since 1970
--   0, lease left in ms, holder   refused (-1 ms: the record has no expiry)
--   2, 0, ''                      the hold was ended by force and gets no vote again
--   4, 0, ''                      nobody has the vote, and it was not given
--   -1, 0, message                this request failed, alone
-- atomic, because a forced release between the check and the grant would be undone by it, and a
-- token must not be stored where another hold has the vote: that one has its number already.
local lease_ms, keep_ms = unpack(ARGV, 1, 2)

local function renew(key, args, arg)
  local lock, revoked, fence = unpack(KEYS, key + 1, key + 3)
  local hold, count, token, known, anew = unpack(args, arg + 1, arg + 5)
  -- The usual case: a forced release takes the vote, so one that has it was not ended by force.
  if known == '1' and redis.call('HGET', lock, hold) == count then
    keep(lock, lease_ms)
    return 1, now_ms(), ''
  end
  if redis.call('HEXISTS', revoked, hold) == 1 then
    return 2, 0, ''
  end
  -- Mostly it has the vote: one field costs less to read than all that there are.
  local by, entered = hold, redis.call('HGET', lock, hold)
  if not entered then
    by, entered = holder(lock)
    if by then
      return 0, redis.call('PTTL', lock), by
    end
  end
  return renew_only(lock, fence, lease_ms, keep_ms, hold, count, token, by, entered, anew)
end

return each(3, 2, 5, 3, renew)
