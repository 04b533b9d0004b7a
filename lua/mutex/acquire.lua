-- mutex/acquire: asks for the vote, for the first time or again.
-- KEYS, for each request: lock
-- ARGV, for each request: hold, count, lease_ms
-- returns, for each request: code, ms, text
--   1, lease left in ms, ''       granted
--   0, lease left in ms, holder   refused (-1 ms: the record has no expiry)
--   -1, 0, message                this request failed, alone
-- atomic, because two holds that look before either writes would both find the lock free.
local function acquire(lock, hold, count, lease_ms)
  return claim(lock, hold, count, lease_ms)
end

return each(1, 3, acquire)
