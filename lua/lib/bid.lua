-- bid: asks for the vote from a place in the queue, which is entered if anybody is in the way.
-- `count` is what the record has of the hold.

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

local function bid(
  lock, queue, alive, fence, hold, floor, ticket, count, lease_ms, keep_ms, wait_ms
)
  if ticket == '' and redis.call('EXISTS', lock, queue) == 0 then
    -- A free lock that nobody waits for is given without an entry, and given again without one.
    local token = number(fence, floor, keep_ms)
    give(lock, hold, count, lease_ms)
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
    give(lock, hold, count, lease_ms)
  end
  return 1, now_ms(), '', token, ticket or next_ticket(queue)
end
