-- mutex/acquire: asks for the vote, for the first time or again; not past those in the queue.
-- KEYS, for each request: lock, queue, alive
-- ARGV, for each request: hold, count, lease_ms
-- returns, for each request: code, ms, text
--   1, lease left in ms, ''       granted
--   0, lease left in ms, holder   refused (-1 ms: the record has no expiry)
--   3, time left in ms, place     refused: the vote is free, but that place waits for it
--   -1, 0, message                this request failed, alone
-- atomic, because two holds that look before either writes would both find the lock free.
local function acquire(lock, queue, alive, hold, count, lease_ms)
  sweep(queue, alive)
  local head = first(queue)
  if head and redis.call('EXISTS', lock) == 0 then
    return 3, left_ms(alive, head), head
  end
  return claim(lock, hold, count, lease_ms)
end

return each(3, 3, acquire)
