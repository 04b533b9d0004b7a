-- mutex/renew: keeps the vote, or takes it again on a voter that lost its data; sets the count, and
-- the token where the voter knows a lower one.
-- KEYS, for each request: lock, revoked, fence
-- ARGV, for each request: hold, count, lease_ms, token, keep_ms
--   token: '' for none; keep_ms: how long the fence is remembered
-- returns, for each request: code, ms, text
--   1, this voter's clock, text   granted; the clock in ms since 1970; text '' where the hold had
--                                 the vote, 'anew' where nobody had
--   0, lease left in ms, holder   refused (-1 ms: the record has no expiry)
--   2, 0, ''                      the hold was ended by force and gets no vote again
--   -1, 0, message                this request failed, alone
-- atomic, because a forced release between the check and the grant would be undone by it, and a
-- token must not be stored where another hold has the vote: that one has its number already.
local function renew(lock, revoked, fence, hold, count, lease_ms, token, keep_ms)
  if redis.call('HEXISTS', revoked, hold) == 1 then
    return 2, 0, ''
  end
  return claim(lock, hold, count, lease_ms, function(has)
    raise(fence, token, keep_ms)
    return has and '' or 'anew'
  end)
end

return each(3, 5, renew)
