-- take: asks for the vote from no place in the queue, and not past those who wait there. `count` is
-- what the record has of the hold.
local function take(lock, queue, alive, fence, hold, floor, count, lease_ms, keep_ms)
  if redis.call('EXISTS', lock, queue) > 0 then
    local head = sweep(queue, alive) and first(queue)
    local by = holder(lock)
    if by and by ~= hold then
      return 0, redis.call('PTTL', lock), by, ''
    end
    if by then
      keep(lock, lease_ms)
      return 1, now_ms(), '', number_again(fence, floor, keep_ms)
    end
    if head then
      return 3, left_ms(alive, head), head, ''
    end
  end
  local token = number(fence, floor, keep_ms)
  give(lock, hold, count, lease_ms)
  return 1, now_ms(), '', token
end
