-- mutex/clear: takes out all who wait, and what is no record of this lock; leaves hold and token.
-- KEYS, for each request: lock, revoked, fence, queue, alive
-- ARGV, for all requests: none
-- ARGV, for each request: none
-- returns, for each request: code, ms, id
--   1, 0, ''         something was taken out
--   0, 0, ''         there was nothing
--   -1, 0, message   this request failed, alone
-- atomic, because what is written between a look and its deletion would be lost.
local function clear(key)
  local lock, revoked, fence, queue, alive = unpack(KEYS, key + 1, key + 5)
  local gone = wipe(queue, alive) + keep_hold(lock)
  gone = gone + keep_type('HEXISTS', revoked, '') + keep_type('GET', fence)
  return math.min(gone, 1), 0, ''
end

return each(5, 0, 0, 3, clear)
