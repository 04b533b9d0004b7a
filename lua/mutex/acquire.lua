-- mutex/acquire: asks for the vote, for the first time or again; not past those in the queue.
-- KEYS, for each request: lock, queue, alive, fence
-- ARGV, for each request: hold, count, lease_ms, floor, keep_ms
--   floor: the least its token may be, '' for none; keep_ms: how long the fence is remembered
-- returns, for each request: code, ms, text
--   1, this voter's clock, token  granted; the clock in ms since 1970
--   0, lease left in ms, holder   refused (-1 ms: the record has no expiry)
--   3, time left in ms, place     refused: the vote is free, but that place waits for it
--   -1, 0, message                this request failed, alone
-- atomic, because two holds that look before either writes would both find the lock free.
local function acquire(lock, queue, alive, fence, hold, count, lease_ms, floor, keep_ms)
  sweep(queue, alive)
  local head = first(queue)
  if head and redis.call('EXISTS', lock) == 0 then
    return 3, left_ms(alive, head), head
  end
  return claim(lock, hold, count, lease_ms, function(has)
    return number(fence, floor, keep_ms, has)
  end)
end

return each(4, 5, acquire)
