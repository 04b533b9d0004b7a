-- redisson/rw_acquire: asks for the vote in an RReadWriteLock of Redisson, to read or to write. As
-- there, nobody stands in a queue, and who reads passes those who wait to write.
-- KEYS, for each request: lock, stem, fence
-- ARGV, for all requests: lease_ms, keep_ms
-- ARGV, for each request: hold, floor
--   stem: what the keys of readers begin with; floor: the least the token of a write may be, ''
--   for none; keep_ms: how long the fence is remembered
-- returns, for each request: code, ms, id, token
--   1, this voter's clock, '', token  granted; the clock in ms since 1970; token '' of a read
--   0, time left in ms, holder, ''    refused: who writes, or one of those who read (-1 ms: the
--                                     record has no expiry)
--   -1, 0, message, ''                this request failed, alone
-- atomic, because two that look before either has entered would both be let in.
local lease_ms, keep_ms = unpack(ARGV, 1, 2)

local function rw_acquire(key, args, arg)
  local lock, stem, fence = unpack(KEYS, key + 1, key + 3)
  local hold, floor = unpack(args, arg + 1, arg + 2)
  local by, ms = in_the_way(lock, hold)
  if by then
    return 0, ms, by, ''
  end
  if not is_write(hold) then
    share(lock, stem, hold, lease_ms)
    return 1, now_ms(), '', ''
  end
  if redis.call('EXISTS', lock) == 1 then
    keep(lock, lease_ms)
    return 1, now_ms(), '', number_again(fence, floor, keep_ms)
  end
  local token = number(fence, floor, keep_ms)
  give(lock, hold, '1', lease_ms)
  return 1, now_ms(), '', token
end

return each(3, 2, 2, 4, rw_acquire)
