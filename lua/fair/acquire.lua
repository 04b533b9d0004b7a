-- fair/acquire: asks for the vote from a place in the queue: enters it, fixes its ticket, refreshes
-- it, and takes the vote if nobody is before it.
-- KEYS, for each request: lock, queue, alive, fence
-- ARGV, for each request: hold, count, lease_ms, floor, keep_ms, ticket, wait_ms, calls
--   floor: the least its token may be, '' for none; keep_ms: how long the fence is remembered
--   ticket '': none is fixed yet; the place keeps what it has, or comes last
-- returns, for each request: code, ms, text
--   1, this voter's clock, ticket ' ' token  granted; the clock in ms since 1970
--   0, lease left in ms, ticket ' ' holder   refused: the first in the queue, and not the holder
--   3, time left in ms, ticket ' ' place     refused: that place is right before this one
--   -1, 0, message                           this request failed, alone
-- atomic, because two waiters that look before either is entered would both be the last.

-- Who stands right before a place, not counting the holder.
local function before(queue, place, holder)
  local rank = redis.call('ZRANK', queue, place) or 0
  while rank > 0 do
    rank = rank - 1
    local other = redis.call('ZRANGE', queue, rank, rank)[1]
    if other ~= holder then
      return other
    end
  end
end

local function next_ticket(queue)
  local last = redis.call('ZRANGE', queue, -1, -1, 'WITHSCORES')
  return tostring(tonumber(last[2] or 0) + 1)
end

local function acquire(lock, queue, alive, fence,
                       hold, count, lease_ms, floor, keep_ms, ticket, wait_ms, calls)
  sweep(queue, alive)
  local place, by, was_first = place_of(hold), redis.call('HKEYS', lock)[1], first(queue)
  if ticket == '' then
    ticket = redis.call('ZSCORE', queue, place)
  end
  -- A free lock that nobody waits for is given without an entry, and given again without one.
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
      tell(queue, place, '', calls, '')
    end
    return 3, left_ms(alive, ahead), ticket .. ' ' .. ahead
  end
  local code, ms, text = claim(lock, hold, count, lease_ms, function(has)
    return number(fence, floor, keep_ms, has)
  end)
  return code, ms, (ticket or next_ticket(queue)) .. ' ' .. text
end

return each(4, 8, acquire)
