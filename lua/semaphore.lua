-- The scripts of the semaphore.

----
-- slots: the permits of a semaphore. A permit is a slot, a number from 0 on, which a voter gives to
-- one hold (design 9). `slots` has the slot of each member, `ends` the end of its lease, by this
-- voter's clock. Both expire with the last member. A hold of several slots is several members: the
-- hold, `<hold>+1`, `<hold>+2` and so on.
local function hold_of(member)
  return string.match(member, '^(.+)%+%d+$') or member
end

local function member_of(hold, at)
  return at == 0 and hold or hold .. '+' .. at
end

local function take_out(slots, ends, members)
  if #members > 0 then
    redis.call('ZREM', slots, unpack(members))
    redis.call('ZREM', ends, unpack(members))
  end
end

-- How many slots are taken. Removes some members whose leases have ended, but only as many as the
-- caller wants: a server answers nobody else while a script runs. If somebody deleted one of the
-- two keys, nobody knows who has what, so both are deleted.
local function sweep_slots(slots, ends, most)
  local taken = redis.call('ZCOUNT', ends, now_ms(), '+inf')
  if taken == redis.call('ZCARD', slots) then
    return taken
  end
  local soonest, ended = redis.call('ZRANGE', ends, 0, most - 1, 'WITHSCORES'), {}
  for at = 1, #soonest, 2 do
    if tonumber(soonest[at + 1]) < now_ms() then
      ended[#ended + 1] = soonest[at]
    end
  end
  take_out(slots, ends, ended)
  if redis.call('ZCARD', slots) ~= redis.call('ZCARD', ends) then
    redis.call('DEL', slots, ends)
    return 0
  end
  return taken
end

-- The slots of a hold, `wanted` at most, in the order in which it has them; none if its lease has
-- ended.
local function slots_of(slots, ends, hold, wanted)
  local own, until_ms = {}, tonumber(redis.call('ZSCORE', ends, hold))
  if not until_ms or until_ms < now_ms() then
    return own
  end
  for at = 0, wanted - 1 do
    local slot = redis.call('ZSCORE', slots, member_of(hold, at))
    if not slot then
      break
    end
    own[at + 1] = tonumber(slot)
  end
  return own
end

-- Slots as a text: ranges with both ends, `7-9,0-0`; and back.
local function text_of(list)
  local ranges, from = {}, list[1]
  for at, slot in ipairs(list) do
    if list[at + 1] ~= slot + 1 then
      ranges[#ranges + 1] = from .. '-' .. slot
      from = list[at + 1]
    end
  end
  return table.concat(ranges, ',')
end

local function read_slots(text)
  local list = {}
  for from, to in string.gmatch(text, '(%d+)%-(%d+)') do
    for slot = tonumber(from), tonumber(to) do
      list[#list + 1] = slot
    end
  end
  return list
end

-- Ends the keys with the last of their members, after one that ended last has changed or gone.
local function end_with_last(slots, ends, former)
  local last = redis.call('ZRANGE', ends, -1, -1, 'WITHSCORES')[2]
  if last and tonumber(last) < former then
    last = math.max(last, now_ms() + 1)
    redis.call('PEXPIREAT', slots, last)
    redis.call('PEXPIREAT', ends, last)
  end
end

-- Takes all slots from a hold. Returns what was left of its lease, nil if it had none.
local function take_slots(slots, ends, hold)
  local until_ms = tonumber(redis.call('ZSCORE', ends, hold))
  if not until_ms then
    return nil
  end
  -- The number of slots is unknown here, and mostly one: two first, then eight times as many.
  local at, some, taken = 0, 2, 0
  repeat
    local members = {}
    for number = 1, some do
      members[number] = member_of(hold, at + number - 1)
    end
    local gone = redis.call('ZREM', slots, unpack(members))
    taken = taken + gone
    gone = gone + redis.call('ZREM', ends, unpack(members))
    -- It has no more if neither key had the last of these.
    local is_all = gone <= 2 * (some - 1)
    at, some = at + some, math.min(8 * some, 256)
  until is_all
  end_with_last(slots, ends, until_ms)
  if taken == 0 or until_ms < now_ms() then
    return nil
  end
  return until_ms - now_ms()
end

-- Keeps the members of a hold for at least `lease_ms`, and never shortens their lease. Begins with
-- PEXPIREAT: a full server refuses writes that could take memory only before a first write.
local function keep_slots(slots, ends, hold, count, lease_ms)
  local former = tonumber(redis.call('ZSCORE', ends, hold)) or 0
  local until_ms = math.max(now_ms() + lease_ms, former)
  redis.call('PEXPIREAT', slots, math.max(until_ms, now_ms() + redis.call('PTTL', slots)))
  redis.call('PEXPIREAT', ends, math.max(until_ms, now_ms() + redis.call('PTTL', ends)))
  local words = {}
  for at = 0, count - 1 do
    words[2 * at + 1], words[2 * at + 2] = until_ms, member_of(hold, at)
  end
  redis.call('ZADD', ends, unpack(words))
end

-- Gives a hold that has no slots these, which nobody has. If the keys get no expiry, takes them
-- back.
local function give_slots(slots, ends, hold, list, lease_ms)
  local until_ms, words, deadlines = now_ms() + lease_ms, {}, {}
  for at, slot in ipairs(list) do
    local member = member_of(hold, at - 1)
    words[2 * at - 1], words[2 * at] = slot, member
    deadlines[2 * at - 1], deadlines[2 * at] = until_ms, member
  end
  redis.call('ZADD', slots, unpack(words))
  redis.call('ZADD', ends, unpack(deadlines))
  if redis.call('PTTL', slots) < lease_ms then
    for _, key in ipairs({ slots, ends }) do
      local done = redis.pcall('PEXPIREAT', key, until_ms)
      if type(done) == 'table' and done.err then
        take_slots(slots, ends, hold)
        error(done.err, 0)
      end
    end
  end
end

-- The number of permits of a semaphore, and until when it applies: the smallest that a holder or
-- waiter has sent lately, so that no grant exceeds the number of any of them.
-- `permits` has both for the lease of the last request, or a quarter longer: so it need not be
-- written each time.
local function fewest(permits, asked)
  local known, until_ms = string.match(redis.call('GET', permits) or '', '^(%d+) (%d+)$')
  known = tonumber(known) or asked
  return math.min(asked, known), known <= asked and tonumber(until_ms) or 0
end

local function remember(permits, asked, limit, known_ms, lease_ms)
  if asked == limit and known_ms < now_ms() + lease_ms then
    local ms = lease_ms + math.floor(lease_ms / 4)
    local text = string.format('%.0f %.0f', asked, now_ms() + ms)
    redis.call('SET', permits, text, 'PX', string.format('%.0f', ms))
  end
end

----
-- served: the queue of a semaphore. A place that gets permits moves from `queue` to `served`, with
-- its ticket: it may have to give them back and wait on, and nobody may get a lower ticket
-- meanwhile (mutant `served_place_is_forgotten`). It is not in `queue`, so that it keeps no other
-- from the permits that are left. `alive` has until when the places of both are kept.

-- Removes the places that have ended. Returns whether there are any left, in either.
local function sweep_places(queue, served, alive)
  if redis.call('EXISTS', queue, served) == 0 then
    return false
  end
  drop_ended(alive, queue, served)
  local places = redis.call('ZCARD', queue) + redis.call('ZCARD', served)
  if places ~= redis.call('ZCARD', alive) then
    -- Somebody deleted one of the keys. All waiters come back, each with its ticket.
    redis.call('DEL', queue, served, alive)
    return false
  end
  return places > 0
end

-- The ticket of a place, nil if there is none.
local function ticket_of(place, queue, served)
  local score = redis.call('ZSCORE', served, place)
  return tonumber(redis.call('ZSCORE', queue, place)) or score and math.floor(score / 1e6)
end

-- The score of a place in `served`: its ticket, and behind it the last six digits of the attempt.
-- So a late undo of an earlier attempt does not move the place of a holder back (`85e27394`).
local function score_of(ticket, hold)
  return ticket * 1e6 + string.match(hold, '%d+$') % 1e6
end

-- This attempt got permits.
local function serve(place, hold, queue, served, alive)
  local ticket = redis.call('ZSCORE', queue, place)
  if not ticket then
    -- The place had ended already.
    return
  end
  redis.call('ZREM', queue, place)
  put(served, score_of(ticket, hold), place, redis.call('PTTL', alive))
end

-- This attempt gave its permits back, and its place waits on. Does nothing to a later attempt.
local function serve_no_more(place, hold, queue, served, alive)
  local score, ticket = redis.call('ZSCORE', served, place), ticket_of(place, queue, served)
  if score and tonumber(score) == score_of(ticket, hold) then
    redis.call('ZREM', served, place)
    put(queue, ticket, place, redis.call('PTTL', alive))
  end
end

----
-- semaphore/acquire: requests permits, with or without a place in the queue.
-- libraries: expire, time, queue, call, enter, slots, served, each
-- KEYS, for each request: slots, ends, queue, served, alive, permits
-- ARGV, for all requests: calls, lease_ms, wait_ms
-- ARGV, for each request: hold, asked, wanted, start, floors, ticket
--   asked: how many permits the semaphore has; wanted: how many slots; start: the slot to look
--   from, round to it again; floors: the least that each slot may be, in that order, or ''
--   ticket '': none is agreed yet; wait_ms: how long the place of the hold is kept, if it has one
-- returns, for each request: code, ms, id, given, ticket
--   1, this voter's clock, '', slots, ticket  granted; the clock in ms since 1970; the slots as
--                                             ranges; ticket -1 where there is no place
--   0, time left in ms, holder, '', ticket    refused: too few are free; the hold that is the last
--                                             to end, and the time until the first ends
--   3, time left in ms, place, '', ticket     refused: that place comes first
--   -1, 0, message, '', ''                    this request failed, alone
--   slots: with ` of ` and a number behind, if others have sent fewer permits lately
-- atomic, because two that look before either has a slot would both take it.
local lease_ms, wait_ms = unpack(ARGV, 2, 3)
lease_ms, wait_ms = tonumber(lease_ms), tonumber(wait_ms)

-- How many slots of a range are free. One command, as no slot is in the set twice.
local function count_free(slots, from, to)
  return to - from + 1 - redis.call('ZCOUNT', slots, from, to)
end

-- So many free slots, in the order from `start` round to it: each the first behind the one before
-- that is not before its floor. `all`: the number of slots of the way round. Slots from `limit` on
-- are given to nobody.
local function choose(slots, wanted, start, floors, all, limit)
  local list = {}
  local function is_before_floor(slot)
    local floor = floors[#list + 1] or start
    return (slot - start) % all < (floor - start) % all
  end
  -- Takes from a range with so many free slots. A range is halved until all of it is free, or
  -- nothing: with 10,000 slots, one command each would take too long.
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
    -- Mostly the next slots are free, so the first range is as short as the request.
    local from, length = arc[1], wanted
    while from <= arc[2] and #list < wanted do
      local to = math.min(from + length - 1, arc[2])
      find(from, to, count_free(slots, from, to))
      from, length = to + 1, 2 * length
    end
  end
  return #list == wanted and list
end

-- Whether no slot of a hold is before its floor.
local function is_behind(own, floors, start, all)
  for at, floor in ipairs(floors) do
    if (own[at] - start) % all < (floor - start) % all then
      return false
    end
  end
  return true
end

-- Enters a place, or finds it: returns its ticket, and the place right before it.
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
    -- Its ticket moved this place back from the front. The waiter that is first now was not woken.
    call_first(queue, place)
  end
  return ticket, ahead
end

-- The answer if too few slots are free.
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
  -- An error, and no refusal: it would wait for ever.
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

----
-- semaphore/renew: keeps the slots of a hold, or answers that it has others or none.
-- libraries: expire, time, queue, call, enter, slots, served, each
-- KEYS, for each request: slots, ends, revoked, queue, served, alive, permits
-- ARGV, for all requests: calls, lease_ms
-- ARGV, for each request: hold, asked, given, anew
--   asked: how many permits the semaphore has; given: the slots, as ranges; anew '1': the hold gets
--   these if nobody has one of them
-- returns, for each request: code, ms, id
--   1, this voter's clock, ''     granted; the clock in ms since 1970
--   0, lease left in ms, holder   refused: that hold has one of the slots
--   2, 0, ''                      the hold was ended by force and gets no slot again
--   4, 0, ''                      the hold has not these slots, and they were not given
--   -1, 0, message                this request failed, alone
-- atomic, because a forced release between the check and the grant would be undone by it.
local lease_ms = ARGV[2]
lease_ms = tonumber(lease_ms)

local function is_same(own, list)
  for at, slot in ipairs(list) do
    if own[at] ~= slot then
      return false
    end
  end
  return #own == #list
end

-- The slots of this list that the hold has, and a member of another hold that has one. Takes them
-- from holds whose leases have ended.
local function look(slots, ends, hold, list)
  local kept, ended, other = {}, {}, nil
  for _, slot in ipairs(list) do
    local member = redis.call('ZRANGEBYSCORE', slots, slot, slot)[1]
    if member and hold_of(member) == hold then
      kept[#kept + 1] = slot
    elseif member and (tonumber(redis.call('ZSCORE', ends, member)) or 0) >= now_ms() then
      other = member
    elseif member then
      ended[#ended + 1] = member
    end
  end
  take_out(slots, ends, ended)
  return kept, other
end

local function renew(key, args, arg)
  local slots, ends, revoked, queue, served, alive, permits = unpack(KEYS, key + 1, key + 7)
  local hold, asked, given, anew = unpack(args, arg + 1, arg + 4)
  if redis.call('HEXISTS', revoked, hold) == 1 then
    return 2, 0, ''
  end
  local list = read_slots(given)
  sweep_slots(slots, ends, 1)
  asked = tonumber(asked)
  local limit, known_ms = fewest(permits, asked)
  local own = slots_of(slots, ends, hold, #list)
  if is_same(own, list) then
    keep_slots(slots, ends, hold, #list, lease_ms)
    remember(permits, asked, limit, known_ms, lease_ms)
    return 1, now_ms(), ''
  end
  local kept, other = look(slots, ends, hold, list)
  if not other and anew == '' then
    return 4, 0, ''
  end
  -- Slots that it has beside the agreed ones are of no use to it, and keep others out.
  local left = take_slots(slots, ends, hold)
  if not other then
    give_slots(slots, ends, hold, list, lease_ms)
    remember(permits, asked, limit, known_ms, lease_ms)
  elseif left and #kept > 0 then
    give_slots(slots, ends, hold, kept, left)
  end
  if left and #kept < #own and sweep_places(queue, served, alive) then
    -- The slots that it had besides are free.
    call_first(queue)
  end
  if other then
    return 0, tonumber(redis.call('ZSCORE', ends, other)) - now_ms(), hold_of(other)
  end
  return 1, now_ms(), ''
end

return each(7, 2, 4, 3, renew)

----
-- semaphore/release: at count 0 gives back all slots of the hold, leaves the queue, and wakes the
-- first waiter.
-- libraries: expire, time, queue, call, enter, slots, served, each
-- KEYS, for each request: slots, ends, queue, served, alive
-- ARGV, for all requests: calls
-- ARGV, for each request: hold, count, place
--   place '': stays in the queue
-- returns, for each request: code, ms, id
--   1, lease left in ms, ''   done (0 ms: given back)
--   0, -2, ''                 this hold has no slot here
--   -1, 0, message            this request failed, alone
-- atomic, because a slot may have passed to another hold since the caller looked.
local function release(key, args, arg)
  local slots, ends, queue, served, alive = unpack(KEYS, key + 1, key + 5)
  local hold, count, place = unpack(args, arg + 1, arg + 3)
  if count ~= '0' then
    local until_ms = tonumber(redis.call('ZSCORE', ends, hold))
    if until_ms and until_ms >= now_ms() and redis.call('ZSCORE', slots, hold) then
      return 1, until_ms - now_ms(), ''
    end
    return 0, -2, ''
  end
  local had = take_slots(slots, ends, hold)
  if sweep_places(queue, served, alive) then
    local own = place_of(hold)
    local was_first = place ~= '' and first(queue) == place
    if place ~= '' then
      leave(place, queue, served, alive)
    elseif own then
      serve_no_more(own, hold, queue, served, alive)
    end
    if had or was_first then
      call_first(queue, own)
    end
  end
  if had then
    return 1, 0, ''
  end
  return 0, -2, ''
end

return each(5, 1, 3, 3, release)

----
-- semaphore/shorten: ends the lease of a hold sooner; never later.
-- libraries: time, slots, each
-- KEYS, for each request: slots, ends
-- ARGV, for all requests: none
-- ARGV, for each request: hold, lease_ms, wanted
--   wanted: how many permits the hold has
-- returns, for each request: code, ms, id
--   1, lease left in ms, ''   done
--   0, -2, ''                 this hold has no slot here
--   -1, 0, message            this request failed, alone
-- atomic, because another hold may come between the new ends and those of the keys.
local function shorten(key, args, arg)
  local slots, ends = unpack(KEYS, key + 1, key + 2)
  local hold, lease_ms, wanted = unpack(args, arg + 1, arg + 3)
  local own, words = slots_of(slots, ends, hold, tonumber(wanted)), {}
  if #own == 0 then
    return 0, -2, ''
  end
  local former = tonumber(redis.call('ZSCORE', ends, hold))
  local until_ms = math.min(former, now_ms() + tonumber(lease_ms))
  for at = 1, #own do
    words[2 * at - 1], words[2 * at] = until_ms, member_of(hold, at - 1)
  end
  -- First, as a full server refuses the other write only before a first one.
  redis.call('PEXPIRE', ends, redis.call('PTTL', ends))
  redis.call('ZADD', ends, unpack(words))
  end_with_last(slots, ends, former)
  return 1, until_ms - now_ms(), ''
end

return each(2, 0, 3, 3, shorten)

----
-- semaphore/force_release: ends one named hold, and stores that, so that no renewal brings it back.
-- libraries: expire, time, mark_ended, queue, call, enter, slots, served, each
-- KEYS, for each request: slots, ends, revoked, queue, served, alive
-- ARGV, for all requests: calls
-- ARGV, for each request: hold, marker_ms
-- returns, for each request: code, ms, id
--   1, lease taken away in ms, ''   the hold had slots, and has none any more
--   0, -2, ''                       marked; the hold had no slot here
--   -1, 0, message                  this request failed, alone
-- atomic, because a renewal between the mark and the deletion would leave one without the other.
local function force_release(key, args, arg)
  local slots, ends, revoked, queue, served, alive = unpack(KEYS, key + 1, key + 6)
  local hold, marker_ms = unpack(args, arg + 1, arg + 2)
  mark_ended(revoked, hold, marker_ms)
  local had = take_slots(slots, ends, hold)
  if sweep_places(queue, served, alive) then
    leave(place_of(hold) or '', queue, served, alive)
    if had then
      call_first(queue)
    end
  end
  if had then
    return 1, had, ''
  end
  return 0, -2, ''
end

return each(6, 1, 2, 3, force_release)

----
-- semaphore/clear: removes all waiters, and what is no record of a semaphore; leaves holds.
-- libraries: clear, each
-- KEYS, for each request: slots, ends, revoked, queue, served, alive, permits
-- ARGV, for all requests: none
-- ARGV, for each request: none
-- returns, for each request: code, ms, id
--   1, 0, ''         something was removed
--   0, 0, ''         there was nothing
--   -1, 0, message   this request failed, alone
-- atomic, because what is written between a look and its deletion would be lost.
local function clear(key)
  local slots, ends, revoked, queue, served, alive, permits = unpack(KEYS, key + 1, key + 7)
  local gone = wipe(queue, served, alive) + keep_type('ZCARD', slots) + keep_type('ZCARD', ends)
  gone = gone + keep_type('HEXISTS', revoked, '') + keep_type('GET', permits)
  return math.min(gone, 1), 0, ''
end

return each(7, 0, 0, 3, clear)

----
-- semaphore/inspect: returns who has which slots, who waits, and the number of permits; changes
-- nothing.
-- libraries: time, queue, list, slots, each
-- KEYS, for each request: slots, ends, queue, alive, permits
-- ARGV, for all requests: none
-- ARGV, for each request: from
--   from: the first slot to list; waiters are listed only from 0
-- returns, for each request: code, ms, id, next, more
--   1, 0, '', next, more     some of these slots are taken; next: from where on there may be more,
--                            0 where there are none
--   0, 0, '', next, more     none is
--   -1, 0, message, '', ''   this request failed, alone
--   more: a list of the slots, a list of the waiters, and the smallest number of permits that was
--   sent lately, '' if none was
--   in the lists, in order: hold and slot, or place and ticket, and the time left in ms
-- atomic, because holders, leases and queue must belong together.
local MOST = 256

local function inspect(key, args, arg)
  local slots, ends, queue, alive, permits = unpack(KEYS, key + 1, key + 5)
  local from = args[arg + 1]
  local held, waiting, next_from = {}, {}, 0
  local rank = redis.call('ZCOUNT', slots, '-inf', '(' .. from)
  local members = redis.call('ZRANGE', slots, rank, rank + MOST - 1, 'WITHSCORES')
  for at = 1, #members, 2 do
    local ms = tonumber(redis.call('ZSCORE', ends, members[at]) or 0) - now_ms()
    if ms >= 0 then
      list(held, hold_of(members[at]), tonumber(members[at + 1]), ms)
    end
  end
  if #members == 2 * MOST then
    next_from = tonumber(members[#members]) + 1
  end
  if from == '0' then
    for place, ticket, ms in places(queue, alive) do
      list(waiting, place, ticket, ms)
    end
  end
  local fewest_known = string.match(latest(permits), '^%d+') or ''
  return math.min(#held, 1), 0, '', next_from, { held, waiting, fewest_known }
end

return each(5, 0, 1, 5, inspect)
