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
-- Few requests need these: `rest` makes them.
local take, number_after
-- A floor above this is not for here.
local most

-- The usual case of `take`: the lock is free, and nobody waits. Written as one function, it takes a
-- server less time. Returns nil in all other cases.
local function take_free(lock, queue, fence, hold, floor)
  if not most then
    most = keep_ms == '' and 0 or (now_ms() + keep_ms / 2) * 1000
  end
  if (tonumber(floor) or 0) > most or redis.call('EXISTS', lock, queue) > 0 then
    return nil
  end
  local token = floor
  if floor ~= '' then
    local latest = redis.call('SET', fence, floor, 'PX', keep_ms, 'GET')
    if latest and (#latest > #floor or #latest == #floor and latest >= floor) then
      if not number_after then
        take, number_after = rest()
      end
      token = number_after(fence, latest, keep_ms)
    end
  end
  redis.call('HSET', lock, hold, '1')
  expire(lock, lease_ms)
  return token
end

local function acquire(key, args, arg)
  local lock, queue, alive, fence = unpack(KEYS, key + 1, key + 4)
  local hold, floor = unpack(args, arg + 1, arg + 2)
  local token = take_free(lock, queue, fence, hold, floor)
  if token then
    return 1, now_ms(), '', token
  end
  if not take then
    take, number_after = rest()
  end
  return take(lock, queue, alive, fence, hold, floor, '1', lease_ms, keep_ms)
end

return each(4, 2, 2, 4, acquire)
