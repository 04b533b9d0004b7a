-- semaphore/acquire: asks for permits, by itself or from a place in the queue.
-- KEYS, for each request: slots, ends, queue, served, alive, permits
-- ARGV, for all requests: calls, lease_ms, wait_ms
-- ARGV, for each request: hold, asked, wanted, start, floors, ticket
--   asked: of how many permits the semaphore is; wanted: how many slots; start: the slot to look
--   from, round to it again; floors '': none, or the least that each slot may be, in that order;
--   ticket '': none is fixed yet; wait_ms: how long the place of the hold counts, if it has one
-- returns, for each request: code, ms, id, given, ticket
--   1, this voter's clock, '', slots, ticket  granted; the clock in ms since 1970; the slots as
--                                             ranges; ticket -1 where there is no place
--   0, time left in ms, holder, '', ticket    refused: too few are free; the hold that is the last
--                                             to end, and the time until the first ends
--   3, time left in ms, place, '', ticket     refused: that place comes first
--   -1, 0, message, '', ''                    this request failed, alone
--   given: behind the slots ` of ` and a number, if others have asked with fewer permits of late
-- atomic, because two that look before either has a slot would both take it.
local lease_ms, wait_ms = unpack(ARGV, 2, 3)
lease_ms, wait_ms = tonumber(lease_ms), tonumber(wait_ms)

-- How many slots of a range nobody has: no slot stands twice.
local function count_free(slots, from, to)
  return to - from + 1 - redis.call('ZCOUNT', slots, from, to)
end

-- So many free slots, in the order from `start` round to it: each the first behind the one before
-- that is not before its floor. `all`: of how many slots the way round is; those from `limit` on
-- are nobody's.
local function choose(slots, wanted, start, floors, all, limit)
  local list = {}
  local function is_before_floor(slot)
    local floor = floors[#list + 1] or start
    return (slot - start) % all < (floor - start) % all
  end
  -- Of a range with so many free slots. A range is halved until all of it is free, or nothing.
  local function find(from, to, free)
    if free == 0 or #list == wanted or is_before_floor(to) then
      return
    elseif free <= to - from then
      local middle = math.floor((from + to) / 2)
      local before = count_free(slots, from, middle)
      find(from, middle, before)
      return find(middle + 1, to, free - before)
    end
    for slot = from, to do
      if #list < wanted and not is_before_floor(slot) then
        list[#list + 1] = slot
      end
    end
  end
  for _, arc in ipairs({ { start, limit - 1 }, { 0, math.min(start, limit) - 1 } }) do
    -- Mostly the next are free.
    local from, length = arc[1], wanted
    while from <= arc[2] and #list < wanted do
      local to = math.min(from + length - 1, arc[2])
      find(from, to, count_free(slots, from, to))
      from, length = to + 1, 2 * length
    end
  end
  return #list == wanted and list
end

-- Whether none of the slots that a hold has is before its floor.
local function is_behind(own, floors, start, all)
  for at, floor in ipairs(floors) do
    if (own[at] - start) % all < (floor - start) % all then
      return false
    end
  end
  return true
end

-- Enters a place, or tells it its ticket again: the ticket, and who stands right before it.
local function stand(queue, served, alive, place, ticket)
  local head = first(queue)
  ticket = tonumber(ticket) or ticket_of(place, queue, served)
  if not ticket then
    local last = redis.call('ZRANGE', queue, -1, -1, 'WITHSCORES')[2] or 0
    local score = redis.call('ZRANGE', served, -1, -1, 'WITHSCORES')[2] or 0
    ticket = math.max(last, math.floor(score / 1e6)) + 1
  end
  enter(queue, alive, place, ticket, wait_ms)
  redis.call('ZREM', served, place)
  local rank = redis.call('ZRANK', queue, place) or 0
  local ahead = rank > 0 and redis.call('ZRANGE', queue, rank - 1, rank - 1)[1]
  if ahead and head == place then
    -- Its ticket took this place from the front: whoever is there now was not called.
    call_first(queue, place)
  end
  return ticket, ahead
end

-- Who is named where too few slots are free.
local function refusal(ends, ticket)
  local soon = redis.call('ZRANGE', ends, 0, 0, 'WITHSCORES')[2]
  if not soon then
    error('no permit is free behind those that were asked for', 0)
  end
  local by = hold_of(redis.call('ZRANGE', ends, -1, -1)[1])
  return 0, math.max(tonumber(soon) - now_ms(), 0), by, '', ticket
end

local function acquire(key, args, arg)
  local slots, ends, queue, served, alive, permits = unpack(KEYS, key + 1, key + 6)
  local hold, asked, wanted, start, floors, ticket = unpack(args, arg + 1, arg + 6)
  asked, wanted, start = tonumber(asked), tonumber(wanted), tonumber(start)
  floors = read_slots(floors)
  local limit, known_ms = fewest(permits, asked)
  if wanted > limit then
    error(wanted .. ' permits are more than others have asked for of late: ' .. limit, 0)
  end
  local free = limit - sweep_slots(slots, ends, wanted)
  local own = slots_of(slots, ends, hold, wanted)
  local had, keeps = #own > 0, #own == wanted and is_behind(own, floors, start, asked)
  free = free + #own
  if keeps then
    keep_slots(slots, ends, hold, wanted, lease_ms)
  end
  local place, waiting = place_of(hold), sweep_places(queue, served, alive)
  local ahead, stands = waiting and first(queue), false
  if place and (ticket ~= '' or not had and #floors == 0 and (waiting or free < wanted)) then
    if not waiting then
      -- Somebody may have deleted the queue alone.
      redis.call('DEL', alive)
    end
    ticket, ahead = stand(queue, served, alive, place, ticket)
    stands = true
  else
    ticket = not place and -1 or waiting and ticket_of(place, queue, served) or 1
  end
  if stands or keeps then
    remember(permits, asked, limit, known_ms, lease_ms)
  end
  if ahead and not had then
    return 3, left_ms(alive, ahead), ahead, '', ticket
  end
  local list, moved = own, had and not keeps
  if not keeps then
    if had then
      take_slots(slots, ends, hold)
    end
    list = free >= wanted and choose(slots, wanted, start, floors, asked, limit)
    if list then
      give_slots(slots, ends, hold, list, lease_ms)
    end
  end
  if list and stands then
    serve(place, hold, queue, served, alive)
  end
  if waiting and (moved or list and free > wanted) then
    call_first(queue, place)
  end
  if not list then
    return refusal(ends, ticket)
  end
  if not (stands or keeps) then
    remember(permits, asked, limit, known_ms, lease_ms)
  end
  local given = text_of(list)
  return 1, now_ms(), '', limit < asked and given .. ' of ' .. limit or given, ticket
end

return each(6, 3, 6, 5, acquire)
