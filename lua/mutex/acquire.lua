-- mutex/acquire: asks for the vote. From a place in the queue: enters it, fixes its ticket,
-- refreshes it, and takes the vote if nobody is before it. From no place: not past those in the
-- queue.
-- KEYS, for each request: lock, queue, alive, fence
-- ARGV, for all requests: calls, lease_ms, keep_ms, wait_ms
-- ARGV, for each request: hold, floor, ticket
--   hold: from a place `<place>.<number>`; floor: the least its token may be, '' for none
--   keep_ms: how long the fence is remembered; wait_ms: how long a place counts
--   ticket: the one of the place; '' while it has none: a place that is in the queue keeps its
--     ticket, another one gets the next
-- returns, for each request: code, ms, id, token, ticket
--   1, this voter's clock, '', token, ticket  granted; the clock in ms since 1970
--   0, lease left in ms, holder, '', ticket   refused: the first in the queue, and not the holder
--   3, time left in ms, place, '', ticket     refused: that place is right before this one
--   -1, 0, message, '', ''                    this request failed, alone
--   from no place the ticket says nothing, and any holder or place is in the way
-- atomic, because two that look before either writes would both find the lock free, or be the last.
local lease_ms, keep_ms, wait_ms = unpack(ARGV, 2, 4)
-- Few requests need these: `rest` makes them.
local ask, number_after
-- A floor above this is left to `ask`.
local most

-- The usual case: the lock is free, and nobody waits. Written as one function, it takes a server
-- less time. Returns nil in all other cases. 64 is `BLOCK` of lib/fence.lua.
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
    if latest and floor - (tonumber(latest) or 0) < 64 then
      if not ask then
        ask, number_after = rest()
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
  local hold, floor, ticket = unpack(args, arg + 1, arg + 3)
  local token = ticket == '' and take_free(lock, queue, fence, hold, floor)
  if token then
    return 1, now_ms(), '', token, 1
  end
  if not ask then
    ask, number_after = rest()
  end
  return ask(lock, queue, alive, fence, hold, floor, ticket, '1', lease_ms, keep_ms, wait_ms)
end

return each(4, 4, 3, 5, acquire)
