-- renew: what a renewal does to a record that only one hold has.

-- Keeps the vote, which `by` has with the count `entered`, or gives it where nobody has it; and
-- answers so.
local function renew_only(lock, fence, lease_ms, keep_ms, hold, count, token, by, entered)
  if not by then
    raise(fence, token, keep_ms)
    give(lock, hold, count, lease_ms)
    return 1, now_ms(), '', 1
  end
  keep(lock, lease_ms)
  raise(fence, token, keep_ms)
  if entered ~= count then
    redis.call('HSET', lock, hold, count)
  end
  return 1, now_ms(), '', 0
end
