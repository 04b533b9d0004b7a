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

-- Who stands right before a place, not counting the holder.
local function before(queue, place, holding)
  local rank = redis.call('ZRANK', queue, place) or 0
  while rank > 0 do
    rank = rank - 1
    local other = redis.call('ZRANGE', queue, rank, rank)[1]
    if other ~= holding then
      return other
    end
  end
end

local function next_ticket(queue)
  local last = redis.call('ZRANGE', queue, -1, -1, 'WITHSCORES')
  return tonumber(last[2] or 0) + 1
end

local function acquire(key, arg)
  local lock, queue, alive, fence = unpack(KEYS, key + 1, key + 4)
  local hold, floor, ticket = unpack(ARGV, arg + 1, arg + 3)
  if ticket == '' and redis.call('EXISTS', lock, queue) == 0 then
    -- A free lock that nobody waits for is given without an entry, and given again without one.
    local token = number(fence, floor, keep_ms)
    give(lock, hold, 1, lease_ms)
    return 1, now_ms(), '', token, 1
  end
  local waiting = sweep(queue, alive)
  local place, by, was_first = place_of(hold), holder(lock), waiting and first(queue) or nil
  ticket = tonumber(ticket) or tonumber(waiting and redis.call('ZSCORE', queue, place))
  if ticket or by ~= hold and (by or was_first) then
    if not was_first then
      -- Somebody may have deleted the queue alone.
      redis.call('DEL', alive)
    end
    ticket = ticket or next_ticket(queue)
    enter(queue, alive, place, ticket, tonumber(wait_ms))
  end
  local ahead = before(queue, place, by and place_of(by))
  if ahead and by ~= hold then
    if not by and was_first == place then
      -- Its ticket took this place from the front: whoever is there now was not called.
      call_first(queue, place)
    end
    return 3, left_ms(alive, ahead), ahead, '', ticket
  end
  if by and by ~= hold then
    return 0, redis.call('PTTL', lock), by, '', ticket
  end
  local token
  if by then
    keep(lock, lease_ms)
    token = number_again(fence, floor, keep_ms)
  else
    token = number(fence, floor, keep_ms)
    give(lock, hold, 1, lease_ms)
  end
  return 1, now_ms(), '', token, ticket or next_ticket(queue)
end

return each(4, 4, 3, 5, acquire)
