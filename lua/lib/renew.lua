-- renew: what a renewal does to a record that only one hold has.

-- Keeps the vote, which `by` has with the count `entered`. Where nobody has it: says so, or with
-- `anew` gives it.
local function renew_only(
  lock, fence, lease_ms, keep_ms, hold, count, token, by, entered, anew
)
  if not by then
    if anew == '' then
      return 4, 0, ''
    end
    raise(fence, token, keep_ms)
    give(lock, hold, count, lease_ms)
    return 1, now_ms(), ''
  end
  keep(lock, lease_ms)
  raise(fence, token, keep_ms)
  if entered ~= count then
    redis.call('HSET', lock, hold, count)
  end
  return 1, now_ms(), ''
end
