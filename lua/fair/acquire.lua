-- fair/acquire: asks for the vote from a place in the queue: enters it, fixes its ticket, refreshes
-- it, and takes the vote if nobody is before it.
-- KEYS, for each request: lock, queue, alive, fence
-- ARGV, for all requests: calls, lease_ms, keep_ms, wait_ms
-- ARGV, for each request: hold, floor, ticket
--   floor: the least its token may be, '' for none; keep_ms: how long the fence is remembered
--   ticket '': none is fixed yet; the place keeps what it has, or comes last
-- returns, for each request: code, ms, id, token, ticket
--   1, this voter's clock, '', token, ticket  granted; the clock in ms since 1970
--   0, lease left in ms, holder, '', ticket   refused: the first in the queue, and not the holder
--   3, time left in ms, place, '', ticket     refused: that place is right before this one
--   -1, 0, message, '', ''                    this request failed, alone
-- atomic, because two waiters that look before either is entered would both be the last.
local lease_ms, keep_ms, wait_ms = unpack(ARGV, 2, 4)

local function acquire(key, args, arg)
  local lock, queue, alive, fence = unpack(KEYS, key + 1, key + 4)
  local hold, floor, ticket = unpack(args, arg + 1, arg + 3)
  return bid(lock, queue, alive, fence, hold, floor, ticket, '1', lease_ms, keep_ms, wait_ms)
end

return each(4, 4, 3, 5, acquire)
