-- redisson/rw_clear: takes out what is no record of an RReadWriteLock of Redisson; leaves holds and
-- token.
-- KEYS, for each request: lock, revoked, fence
-- ARGV, for all requests: none
-- ARGV, for each request: none
-- returns, for each request: code, ms, id
--   1, 0, ''         something was taken out
--   0, 0, ''         there was nothing
--   -1, 0, message   this request failed, alone
-- atomic, because what is written between a look and its deletion would be lost.
local function rw_clear(key)
  local lock, revoked, fence = unpack(KEYS, key + 1, key + 3)
  local mode, gone = readable('HGET', lock, 'mode')
  if mode ~= 'read' and mode ~= 'write' then
    gone = gone + wipe(lock)
  end
  gone = gone + keep_type('HEXISTS', revoked, '') + keep_type('GET', fence)
  return math.min(gone, 1), 0, ''
end

return each(3, 0, 0, 3, rw_clear)
