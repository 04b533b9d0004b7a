-- mutex/acquire: asks for the vote, for the first time or again; not past those in the queue.
-- KEYS, for each request: lock, queue, alive, fence
-- ARGV, for all requests: lease_ms, keep_ms
-- ARGV, for each request: hold, floor
--   floor: the least its token may be, '' for none; keep_ms: how long the fence is remembered
-- returns, for each request: code, ms, id, token
--   1, this voter's clock, '', token  granted; the clock in ms since 1970
--   0, lease left in ms, holder, ''   refused (-1 ms: the record has no expiry)
--   3, time left in ms, place, ''     refused: the vote is free, but that place waits for it
--   -1, 0, message, ''                this request failed, alone
-- atomic, because two holds that look before either writes would both find the lock free.
local lease_ms, keep_ms = unpack(ARGV, 1, 2)

local function acquire(key, args, arg)
  local lock, queue, alive, fence = unpack(KEYS, key + 1, key + 4)
  local hold, floor = unpack(args, arg + 1, arg + 2)
  return take(lock, queue, alive, fence, hold, floor, '1', lease_ms, keep_ms)
end

return each(4, 2, 2, 4, acquire)
