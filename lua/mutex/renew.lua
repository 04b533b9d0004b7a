-- mutex/renew: keeps the vote, or takes it again on a voter that lost its data; sets the count.
-- KEYS, for each request: lock, revoked
-- ARGV, for each request: hold, count, lease_ms
-- returns, for each request: code, ms, text
--   1, lease left in ms, ''       granted
--   0, lease left in ms, holder   refused (-1 ms: the record has no expiry)
--   2, 0, ''                      the hold was ended by force and gets no vote again
--   -1, 0, message                this request failed, alone
-- atomic, because a forced release between the check and the grant would be undone by it.
local function renew(lock, revoked, hold, count, lease_ms)
  if redis.call('HEXISTS', revoked, hold) == 1 then
    return 2, 0, ''
  end
  return claim(lock, hold, count, lease_ms)
end

return each(2, 3, renew)
