-- semaphore/clear: takes out all who wait, and what is no record of a semaphore; leaves holds.
-- KEYS, for each request: slots, ends, revoked, queue, served, alive, permits
-- ARGV, for all requests: none
-- ARGV, for each request: none
-- returns, for each request: code, ms, id
--   1, 0, ''         something was taken out
--   0, 0, ''         there was nothing
--   -1, 0, message   this request failed, alone
-- atomic, because what is written between a look and its deletion would be lost.
local function clear(key)
  local slots, ends, revoked, queue, served, alive, permits = unpack(KEYS, key + 1, key + 7)
  local gone = wipe(queue, served, alive) + keep_type('ZCARD', slots) + keep_type('ZCARD', ends)
  gone = gone + keep_type('HEXISTS', revoked, '') + keep_type('GET', permits)
  return math.min(gone, 1), 0, ''
end

return each(7, 0, 0, 3, clear)
