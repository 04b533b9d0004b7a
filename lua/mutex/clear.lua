-- mutex/clear: takes out all who wait, and what is no record of this lock; leaves hold and token.
-- KEYS, for each request: lock, revoked, fence, queue, alive
-- ARGV, for each request: none
-- returns, for each request: code, ms, text
--   1, 0, ''         something was taken out
--   0, 0, ''         there was nothing
--   -1, 0, message   this request failed, alone
-- atomic, because what is written between a look and its deletion would be lost.
local function clear(lock, revoked, fence, queue, alive)
  local gone = wipe(queue, alive) + keep_hold(lock)
  gone = gone + keep_type('HEXISTS', revoked, '') + keep_type('GET', fence)
  return math.min(gone, 1), 0, ''
end

return each(5, 0, clear)
