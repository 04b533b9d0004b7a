-- The scripts of a lock that only one hold can have.

----
-- tell: publishes on a lock's channel that the vote is free. The third of ARGV, for all requests,
-- is the command for that. The second is '1' if Java programs listen, which do not know the queue.
-- If a waiter of the queue was woken, the message is 00: Java reads it as 0, and our clients ignore
-- it.
local aloud, publish = unpack(ARGV, 2, 3)
local is_sharded = publish == 'SPUBLISH'

local function tell(channel, called)
  if channel ~= '' then
    announce(publish, channel, called and aloud == '1' and '00' or '0')
  end
end

----
-- release_any: every case of a release. It sets the count of a hold that excludes all others. At 0
-- the caller has taken its vote (`had`: whether it had one): then its place leaves the queue, and
-- the first waiter is woken.
local function release_any(lock, queue, alive, hold, count, had, place, channel)
  if count ~= '0' then
    local ms = recount(lock, hold, count)
    if ms then
      return 1, ms, ''
    end
    return 0, redis.call('PTTL', lock), holder(lock) or ''
  end
  local waiting = sweep(queue, alive)
  -- A waiter that gives up may have been woken just now: then the next has to be.
  local was_first = waiting and not had and place ~= '' and first(queue) == place
  if waiting and place ~= '' then
    leave(place, queue, alive)
  end
  if had then
    tell(channel, waiting and call_first(queue, place_of(hold), not is_sharded and alive))
    return 1, 0, ''
  end
  local by = holder(lock)
  if was_first and not by then
    tell(channel, call_first(queue, place, not is_sharded and alive))
  end
  return 0, redis.call('PTTL', lock), by or ''
end

----
-- mutex/acquire: requests the vote. With a place in the queue: enters it, sets its ticket, keeps it
-- alive, and takes the vote if nobody comes before it. Without a place: not past waiters.
-- libraries: expire, time, each
-- libraries of rest: fence, holder, vote, queue, call, enter, take, bid, ask
-- rest returns: ask, number_after
-- KEYS, for each request: lock, queue, alive, fence
-- ARGV, for all requests: calls, lease_ms, keep_ms, wait_ms
-- ARGV, for each request: hold, floor, ticket
--   hold: with a place `<place>.<number>`; floor: the least its token may be, '' for none
--   keep_ms: how long the fence is kept; wait_ms: how long a place is kept
--   ticket: the agreed one of the place, '' while there is none: then a place that is in the queue
--     keeps its ticket, and another one gets the next
-- returns, for each request: code, ms, id, token, ticket
--   1, this voter's clock, '', token, ticket  granted; the clock in ms since 1970
--   0, lease left in ms, holder, '', ticket   refused: the first in the queue, and not the holder
--   3, time left in ms, place, '', ticket     refused: that place is right before this one
--   -1, 0, message, '', ''                    this request failed, alone
--   without a place the ticket means nothing, and any holder or place is in the way
-- atomic, because two that look before either writes would both find the lock free, or be the last.
local lease_ms, keep_ms, wait_ms = unpack(ARGV, 2, 4)
-- Few requests need these, so `rest` builds them only then: a server builds all functions of a
-- script again at each call. Of 21 µs for one acquire, its commands took 4 (design 3).
local ask, number_after
-- `ask` limits a floor above this.
local most

-- The usual case: the lock is free, and nobody waits. In one function, as that takes a server less
-- time. Returns nil in all other cases. 64 is `BLOCK` of fence.
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

----
-- mutex/pass: passes the vote of one hold on to another: to a parked hold, from there to the hold
-- that resumes it, or back. It gives no vote that the former hold does not have: a ticket whose
-- time is over must not take a free lock (mutant `hold_is_resumed_from_nothing`).
-- libraries: expire, time, fence, holder, vote, queue, call, each
-- KEYS, for each request: lock, revoked, fence, queue, alive
-- ARGV, for all requests: calls, lease_ms, keep_ms
-- ARGV, for each request: hold, former, secret, floor
--   secret: of the ticket; a parked hold takes and gives votes only with its own
--   floor: the least that its token may be, '' for none; keep_ms: how long the fence is kept
-- returns, for each request: code, ms, id, token, ticket
--   1, this voter's clock, '', token, 0   the hold has the vote; the clock in ms since 1970
--   0, lease left in ms, holder, '', 0    another hold has it, or the secret is wrong
--   2, 0, '', '', 0                       the hold was ended by force and gets no vote again
--   4, 0, '', '', 0                       nobody has the vote
--   -1, 0, message, '', ''                this request failed, alone
-- atomic, because two that resume one hold would both find its vote.
local lease_ms, keep_ms = unpack(ARGV, 2, 3)

-- The id of a parked hold ends with a hash. Whoever knows only the id, which is no secret, can move
-- no vote to or from it.
local function may_pass(hold, secret)
  local hash = string.match(hold, '^[^:]*:p%d+%-(%x+)$')
  return not hash or hash == string.sub(redis.sha1hex(secret), 1, 32)
end

local function pass(key, args, arg)
  local lock, revoked, fence, queue, alive = unpack(KEYS, key + 1, key + 5)
  local hold, former, secret, floor = unpack(args, arg + 1, arg + 4)
  if redis.call('HEXISTS', revoked, hold) == 1 then
    return 2, 0, '', '', 0
  end
  local by = holder(lock)
  if not by then
    return 4, 0, '', '', 0
  end
  -- The request runs for the second time (law 5).
  if by == hold then
    keep(lock, lease_ms)
    return 1, now_ms(), '', number_again(fence, floor, keep_ms), 0
  end
  if by ~= former or not (may_pass(hold, secret) and may_pass(former, secret)) then
    return 0, redis.call('PTTL', lock), by, '', 0
  end
  keep(lock, lease_ms)
  local token = number(fence, floor, keep_ms)
  -- In this order: without its last field the record would be gone, and its lease with it.
  redis.call('HSET', lock, hold, '1')
  redis.call('HDEL', lock, former)
  leave(place_of(former) or '', queue, alive)
  if string.find(former, ':p', 1, true) then
    -- The client that parks it renews at once, and so learns whether it was resumed.
    call(former)
  end
  return 1, now_ms(), '', token, 0
end

return each(5, 3, 4, 5, pass)

----
-- mutex/renew: keeps the vote, or answers that nobody has it; sets the count. In full it also
-- refuses a hold that was ended by force, and keeps the token, or stores it if the voter has a
-- lower one. In brief it does so only if the hold has no vote with this count.
-- libraries: expire, time, fence, holder, vote, renew, each
-- KEYS, for each request: lock, revoked, fence
-- ARGV, for all requests: lease_ms, keep_ms
-- ARGV, for each request: hold, count, token, known, anew
--   token: '' for none; keep_ms: how long the fence is kept; known '1': in brief
--   anew '1': the hold gets the vote if nobody has it
-- returns, for each request: code, ms, id
--   1, this voter's clock, ''     granted; the clock in ms since 1970
--   0, lease left in ms, holder   refused (-1 ms: the record has no expiry)
--   2, 0, ''                      the hold was ended by force and gets no vote again
--   4, 0, ''                      nobody has the vote, and it was not given
--   -1, 0, message                this request failed, alone
-- atomic, because a forced release between the check and the grant would be undone by it, and a
-- token must not be stored where another hold has the vote: that one has its number already.
local lease_ms, keep_ms = unpack(ARGV, 1, 2)

local function renew(key, args, arg)
  local lock, revoked, fence = unpack(KEYS, key + 1, key + 3)
  local hold, count, token, known, anew = unpack(args, arg + 1, arg + 5)
  -- The usual case, with one key in place of three. A forced release takes the vote, so a hold that
  -- has it was not ended by force.
  if known == '1' and redis.call('HGET', lock, hold) == count then
    keep(lock, lease_ms)
    return 1, now_ms(), ''
  end
  if redis.call('HEXISTS', revoked, hold) == 1 then
    return 2, 0, ''
  end
  -- Usually it has the vote, and one field costs less to read than the whole record.
  local by, entered = hold, redis.call('HGET', lock, hold)
  if not entered then
    by, entered = holder(lock)
    if by then
      return 0, redis.call('PTTL', lock), by
    end
  end
  return renew_only(lock, fence, lease_ms, keep_ms, hold, count, token, by, entered, anew)
end

return each(3, 2, 5, 3, renew)

----
-- mutex/release: sets the count; at 0 gives the vote back, leaves the queue, and wakes the first
-- waiter.
-- libraries: publish, each
-- libraries of rest: time, holder, recount, queue, call, tell, release_any
-- rest returns: release_any
-- KEYS, for each request: lock, queue, alive
-- ARGV, for all requests: calls, aloud, publish
-- ARGV, for each request: hold, count, place, channel
--   aloud '1': Java programs listen, which do not know the queue
--   place: the place to remove from the queue, '' for none
--   channel: where such programs listen, or observers of an election; '' for none
-- returns, for each request: code, ms, id
--   1, lease left in ms, ''       done (0 ms: given back)
--   0, lease left in ms, holder   this hold has no vote here (-2 ms and '': nobody has)
--   -1, 0, message                this request failed, alone
-- atomic, because the vote may have passed to another hold since the caller looked.
local publish = ARGV[3]
-- Few requests need it, so `rest` builds it only then.
local release_any

local function release(key, args, arg)
  local lock, queue, alive = unpack(KEYS, key + 1, key + 3)
  local hold, count, place, channel = unpack(args, arg + 1, arg + 4)
  -- HDEL of the hold's own field: a late release must not take the vote of the next hold.
  local had = count == '0' and redis.call('HDEL', lock, hold) == 1
  if had and redis.call('ZCARD', queue) == 0 then
    -- The usual case: nobody waits.
    if channel ~= '' then
      announce(publish, channel, '0')
    end
    return 1, 0, ''
  end
  release_any = release_any or rest()
  return release_any(lock, queue, alive, hold, count, had, place, channel)
end

return each(3, 3, 4, 3, release)

----
-- mutex/shorten: ends the lease of a hold sooner, and its place with it; never later.
-- libraries: time, holder, queue, shorten_place, each
-- KEYS, for each request: lock, alive
-- ARGV, for all requests: none
-- ARGV, for each request: hold, lease_ms
-- returns, for each request: code, ms, id
--   1, lease left in ms, ''       done
--   0, lease left in ms, holder   this hold has no vote here (-2 ms and '': nobody has)
--   -1, 0, message                this request failed, alone
-- atomic, because the vote may have passed to another hold since the caller looked.
local function shorten(key, args, arg)
  local lock, alive = unpack(KEYS, key + 1, key + 2)
  local hold, lease_ms = unpack(args, arg + 1, arg + 2)
  local left = redis.call('PTTL', lock)
  if redis.call('HEXISTS', lock, hold) == 0 then
    return 0, left, holder(lock) or ''
  end
  lease_ms = tonumber(lease_ms)
  if left > lease_ms then
    redis.call('PEXPIRE', lock, lease_ms)
    left = lease_ms
    shorten_place(alive, hold, lease_ms)
  end
  return 1, left, ''
end

return each(2, 0, 2, 3, shorten)

----
-- mutex/force_release: ends one named hold, whoever asks, and stores that, so that no renewal
-- brings it back.
-- libraries: expire, time, mark_ended, holder, queue, call, publish, tell, each
-- KEYS, for each request: lock, revoked, queue, alive
-- ARGV, for all requests: calls, aloud, publish
-- ARGV, for each request: hold, marker_ms, channel
--   aloud, channel: as in mutex/release
-- returns, for each request: code, ms, id
--   1, lease taken away in ms, ''   the hold had the vote, and has it no more
--   0, lease left in ms, holder     marked; the hold had no vote here (-2 ms and '': nobody has)
--   -1, 0, message                  this request failed, alone
-- atomic, because a renewal between the mark and the deletion would leave one without the other.
local function force_release(key, args, arg)
  local lock, revoked, queue, alive = unpack(KEYS, key + 1, key + 4)
  local hold, marker_ms, channel = unpack(args, arg + 1, arg + 3)
  -- Also if the hold has no vote here: a voter that missed the hold would give it a vote when it is
  -- renewed.
  mark_ended(revoked, hold, marker_ms)
  local ms = redis.call('PTTL', lock)
  if redis.call('HDEL', lock, hold) == 0 then
    return 0, ms, holder(lock) or ''
  end
  -- In a record of another program other holds may share the vote, and keep it.
  local other = holder(lock)
  if other and other ~= 'mode' then
    return 1, ms, ''
  end
  redis.call('DEL', lock)
  local waiting = sweep(queue, alive)
  leave(place_of(hold) or '', queue, alive)
  tell(channel, waiting and call_first(queue, nil, not is_sharded and alive))
  return 1, ms, ''
end

return each(4, 3, 3, 3, force_release)

----
-- mutex/clear: removes all waiters, and what is no record of this lock; leaves hold and token.
-- libraries: clear, each
-- KEYS, for each request: lock, revoked, fence, queue, alive
-- ARGV, for all requests: none
-- ARGV, for each request: none
-- returns, for each request: code, ms, id
--   1, 0, ''         something was removed
--   0, 0, ''         there was nothing
--   -1, 0, message   this request failed, alone
-- atomic, because what is written between a look and its deletion would be lost.
local function clear(key)
  local lock, revoked, fence, queue, alive = unpack(KEYS, key + 1, key + 5)
  local gone = wipe(queue, alive) + keep_hold(lock)
  gone = gone + keep_type('HEXISTS', revoked, '') + keep_type('GET', fence)
  return math.min(gone, 1), 0, ''
end

return each(5, 0, 0, 3, clear)

----
-- mutex/inspect: returns who has the vote, who waits and the latest token; changes nothing.
-- libraries: time, holder, queue, list, each
-- KEYS, for each request: lock, queue, alive, fence
-- ARGV, for all requests: none
-- ARGV, for each request: none
-- returns, for each request: code, ms, id, count, more
--   1, lease left in ms, holder, count, more   held (-1 ms: the record has no expiry)
--   0, -2, '', 0, more                         free
--   -1, 0, message, '', ''                     this request failed, alone
--   more: a list of the waiters, and the token of the latest hold, '' if there is none
--   in the list, for each waiting place, in order: place, ticket, time left in ms
-- atomic, because holder, count, lease and queue must belong together.
local function inspect(key)
  local lock, queue, alive, fence = unpack(KEYS, key + 1, key + 4)
  local by, count = holder(lock)
  local waiting = {}
  for place, ticket, ms in places(queue, alive) do
    if place ~= (by and place_of(by)) then
      list(waiting, place, ticket, ms)
    end
  end
  local more = { waiting, latest(fence) }
  if not by then
    return 0, -2, '', 0, more
  end
  return 1, redis.call('PTTL', lock), by, tonumber(count) or 0, more
end

return each(4, 0, 0, 5, inspect)
