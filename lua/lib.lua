-- Code that scripts of several kinds share.

----
-- time: one moment for the whole script, by this voter's clock. Read once, as two moments could
-- find a place alive and then ended; and only if asked for, as TIME is a command like any other.
local asked_ms
local function now_ms()
  if not asked_ms then
    local time = redis.call('TIME')
    asked_ms = time[1] * 1000 + math.floor(time[2] / 1000)
  end
  return asked_ms
end

----
-- expire: gives a record that was just written its expiry. If that fails, as for a user without
-- the right to PEXPIRE, deletes the record: none stays for ever (law 6).
local function expire(key, ms)
  local done = redis.pcall('PEXPIRE', key, ms)
  if type(done) == 'table' and done.err then
    redis.call('DEL', key)
    error(done.err, 0)
  end
end

----
-- publish: publishes a message. `publish` is PUBLISH or SPUBLISH. If the server does not know the
-- command, or does not allow it, clients cannot subscribe that way either, so PUBLISH will do.
local function announce(publish, channel, message)
  local told = redis.pcall(publish, channel, message)
  if type(told) == 'table' and told.err then
    redis.call('PUBLISH', channel, message)
  end
end

----
-- each: runs `run` once per request, with the offsets of its keys and arguments: a request has
-- `keys_each` of KEYS and, behind the `shared` arguments, `args_each` of ARGV. It adds `width`
-- entries, at most five, to the flat reply. A request that raises an error, or lacks an entry,
-- answers -1, 0 and the message, and harms no other: at a nil the server would end the whole reply.
-- If there is one key more than the requests have, that is the fingerprint of this voter's data.
-- Then the reply has one entry more, the name of the data, or '' if the fingerprint is gone.
-- A packed reply is one text, which costs the client less to read. Likewise the arguments behind
-- the shared ones may be packed into one. Voters inside a process have no cmsgpack: there the reply
-- is the list itself.
local msgpack = rawget(_G, 'cmsgpack')

local function each(keys_each, shared, args_each, width, run)
  local args, first_arg, replies, at = ARGV, shared, {}, 0
  if args_each > 1 and #ARGV == shared + 1 then
    args, first_arg = msgpack.unpack(ARGV[#ARGV]), 0
  end
  for request = 0, #KEYS / keys_each - 1 do
    local ok, a, b, c, d, e =
      pcall(run, request * keys_each, args, first_arg + request * args_each)
    if a == nil or b == nil or c == nil or width > 3 and d == nil or width > 4 and e == nil then
      ok, a = false, ok and 'a part of the answer is missing' or a
    end
    if not ok then
      -- An error is a string on some servers and a table with the field err on others.
      a, b, c, d, e = -1, 0, type(a) == 'table' and a.err or tostring(a), '', ''
    end
    replies[at + 1], replies[at + 2], replies[at + 3] = a, b, c
    if width > 3 then
      replies[at + 4] = d
    end
    if width > 4 then
      replies[at + 5] = e
    end
    at = at + width
  end
  if #KEYS % keys_each == 1 then
    local fingerprint = redis.pcall('GET', KEYS[#KEYS])
    replies[at + 1] = type(fingerprint) == 'string' and string.match(fingerprint, '^%S*') or ''
  end
  return msgpack and msgpack.pack(replies) or replies
end

----
-- holder: the record of a hold that excludes all others is a hash with one field, the hold, and its
-- count. It expires with the lease.

-- The hold that has the vote, and its count. The record of a RReadWriteLock of Redisson has a field
-- `mode` before its holds.
local function holder(lock)
  local record = redis.call('HGETALL', lock)
  if record[1] == 'mode' and record[3] then
    return record[3], record[4]
  end
  return record[1], record[2]
end

----
-- fence: the number of the latest hold that had this vote. It grows from hold to hold (law 3). A
-- floor or token of '': the hold wants no token. A `keep_ms` of '': the number never expires.
local function store(fence, token, keep_ms)
  local text = string.format('%.0f', token)
  if keep_ms == '' then
    redis.call('SET', fence, text)
  else
    redis.call('SET', fence, text, 'PX', keep_ms)
  end
  return text
end

-- A hold has so many numbers, and the last of them is stored: tasks of its client can have the hold
-- one after the other, each with a number of its own (design 10). The same as `Token::BLOCK`.
local BLOCK = 64

local DAY_MS = 24 * 3600 * 1000

-- Whole numbers without leading zeros compare as their texts do, and that costs less than reading
-- them.
local function exceeds(number, other)
  return #number > #other or #number == #other and number > other
end

-- Limits a floor to this voter's clock plus half of the time for which a number is kept. A client
-- whose clock is years ahead would otherwise raise the tokens by years, and they would fall once
-- the number is forgotten. So limited, right clocks have passed it by then.
local most
local function bounded(floor, keep_ms)
  if not most then
    local ms = (tonumber(keep_ms) or DAY_MS) / 2
    most = string.format('%.0f', (now_ms() + ms) * 1000)
  end
  return exceeds(floor, most) and most or floor
end

-- Counts on from the latest number, by a whole block.
local function number_after(fence, latest, keep_ms)
  latest = tonumber(latest)
  if not (latest + BLOCK < 2 ^ 53) then
    -- From there on doubles are not exact, so two tokens could be equal. No voter counts so far:
    -- somebody else wrote that. The floor is stored by now, so the next request does not fail.
    error('the fencing tokens of this lock are used up: they begin anew', 0)
  end
  return store(fence, latest + BLOCK, keep_ms)
end

-- The number of a hold that gets the vote now.
local function number(fence, floor, keep_ms)
  if floor == '' then
    return ''
  end
  floor = bounded(floor, keep_ms)
  -- One command in place of two, as the floor is nearly always above the latest number. Otherwise
  -- `number_after` writes once more.
  local latest
  if keep_ms == '' then
    latest = redis.call('SET', fence, floor, 'GET')
  else
    latest = redis.call('SET', fence, floor, 'PX', keep_ms, 'GET')
  end
  if not latest or floor - (tonumber(latest) or 0) >= BLOCK then
    return floor
  end
  return number_after(fence, latest, keep_ms)
end

-- The number of a hold that already has the vote. A request that runs twice must not get another
-- one (law 5, mutant `token_counts_twice`).
local function number_again(fence, floor, keep_ms)
  local latest = floor ~= '' and redis.call('GET', fence)
  return latest or number(fence, floor, keep_ms)
end

-- Stores the token of the hold that has the vote, and keeps it from expiring. A value that is no
-- number, or of another type, was written by no lock: a hold must not end because of it.
local function raise(fence, token, keep_ms)
  if token == '' then
    return
  end
  local latest = redis.pcall('GET', fence)
  if type(latest) == 'table' and not string.find(latest.err, 'WRONGTYPE', 1, true) then
    error(latest.err, 0)
  end
  if latest ~= token and (tonumber(latest) or 0) < tonumber(token) then
    store(fence, tonumber(token), keep_ms)
  elseif keep_ms ~= '' then
    redis.call('PEXPIRE', fence, keep_ms)
  end
end

----
-- vote: gives the vote to a hold that excludes all others, and keeps it. Times that came as text
-- are passed on as text, as a server takes long to write a number.

-- Keeps a vote, and never shortens its lease: a late request with a shorter one would end it under
-- a hold that relies on more (law 7). It must be the first write of a script: a full server refuses
-- writes that could take memory, but none after a first write that takes none.
local function keep(lock, lease_ms)
  local left = redis.call('PTTL', lock)
  redis.call('PEXPIRE', lock, left > tonumber(lease_ms) and left or lease_ms)
end

-- Gives a vote that nobody has.
local function give(lock, hold, count, lease_ms)
  redis.call('HSET', lock, hold, count)
  expire(lock, lease_ms)
end

----
-- enter: stores a place with its ticket, and keeps it for `wait_ms` from now on.

-- Puts a member into a set that lasts for at least `ms`, and is never without an expiry. The order
-- matters: PEXPIRE first, so that a full server accepts the rest if the set exists.
local function put(key, score, member, ms)
  local stands = redis.call('PEXPIRE', key, math.max(ms, redis.call('PTTL', key))) == 1
  redis.call('ZADD', key, score, member)
  if not stands then
    expire(key, ms)
  end
end

local function enter(queue, alive, place, ticket, wait_ms)
  put(queue, ticket, place, wait_ms)
  put(alive, now_ms() + wait_ms, place, wait_ms)
end

----
-- queue: the waiters for the vote, by ticket and then by place. `queue` has the tickets, `alive`
-- until when each place is kept, by this voter's clock. A place is one waiter's. Each attempt from
-- it is a hold of its own, `<place>.<number>`, so that a late undo takes nothing from the next. The
-- place stays while a hold of it has the vote, and is skipped then: if it left, a later caller
-- could get a lower ticket (mutant `place_ends_with_the_grant`).

local function place_of(hold)
  return string.match(hold, '^(.+)%.%d+$')
end

local function leave(place, ...)
  for _, key in ipairs({ ... }) do
    redis.call('ZREM', key, place)
  end
end

-- No place is kept for longer than the longest lease after its last request.
local LONGEST_MS = 24 * 3600 * 1000

-- Removes from `alive` and these keys the places whose waiters have not asked for too long. Also
-- the places that would be kept for longer than any can: this voter's clock was ahead, or somebody
-- else wrote them. They would keep the lock from everybody.
local function drop_ended(alive, ...)
  local too_far = '(' .. now_ms() + LONGEST_MS
  for _, range in ipairs({ { '-inf', now_ms() }, { too_far, '+inf' } }) do
    for _, place in ipairs(redis.call('ZRANGEBYSCORE', alive, unpack(range))) do
      leave(place, alive, ...)
    end
  end
end

-- Removes the places that have ended, also from `writers`, if given. Returns whether there were
-- places at all.
local function sweep(queue, alive, writers)
  local places = redis.call('ZCARD', queue)
  if places == 0 then
    return false
  end
  local counting = redis.call('ZCOUNT', alive, '(' .. now_ms(), now_ms() + LONGEST_MS)
  -- The usual case, with three commands however long the queue is.
  if counting == places and redis.call('ZCARD', alive) == places then
    return true
  end
  drop_ended(alive, queue, writers)
  if redis.call('ZCARD', queue) ~= redis.call('ZCARD', alive) then
    -- Somebody deleted one of the two: a place may be left that is never found to have ended. All
    -- waiters come back, each with its ticket.
    redis.call('DEL', unpack({ queue, alive, writers }))
  end
  return true
end

local function left_ms(alive, place)
  return tonumber(redis.call('ZSCORE', alive, place)) - now_ms()
end

local function first(queue)
  return redis.call('ZRANGE', queue, 0, 0)[1]
end

----
-- call: wakes a waiter in a queue, on the channel of its client. The beginning of the channels'
-- names is the first of ARGV, for all requests.
local calls = ARGV[1]

-- Returns how many clients of this server hear it.
local function call(place)
  return redis.call('PUBLISH', calls .. string.match(place, '^[^:]*'), place)
end

-- The vote is free: wakes the first waiter, and no other, as a crowd that is woken mostly fails
-- (`ebc29b7e`). Not `place`, whose waiter knows. Returns the first waiter, if there is one.
-- With `alive`, a place without a promised order (`:~`) is removed if its client does not hear the
-- wake-up, and the next is woken: a dead waiter holds up nobody. A place with an order stays, as
-- its client may only have lost a connection. Not in a cluster, where the client may be subscribed
-- at another server.
local function call_first(queue, place, alive)
  local head = first(queue)
  while head and head ~= place and call(head) == 0 do
    if not (alive and string.find(head, ':~', 1, true)) then
      break
    end
    leave(head, queue, alive)
    head = first(queue)
  end
  return head
end

----
-- take: requests the vote without a place in the queue, and not past the waiters there. `count`:
-- the value of the hold in the record.
local function take(lock, queue, alive, fence, hold, floor, count, lease_ms, keep_ms)
  if redis.call('EXISTS', lock, queue) > 0 then
    local head = sweep(queue, alive) and first(queue)
    local by = holder(lock)
    if by and by ~= hold then
      return 0, redis.call('PTTL', lock), by, ''
    end
    -- A hold that has the vote is not behind the queue: this request runs for the second time.
    if by then
      keep(lock, lease_ms)
      return 1, now_ms(), '', number_again(fence, floor, keep_ms)
    end
    if head then
      return 3, left_ms(alive, head), head, ''
    end
  end
  local token = number(fence, floor, keep_ms)
  give(lock, hold, count, lease_ms)
  return 1, now_ms(), '', token
end

----
-- bid: requests the vote from a place in the queue, which is entered if anybody is in the way.
-- `count`: the value of the hold in the record.

-- The place right before this one, without the holder's. Each waiter watches the one before it, so
-- only one waiter asks when a dead one has ended.
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
    -- A free lock without waiters is granted without an entry: an uncontended lock costs no queue.
    local token = number(fence, floor, keep_ms)
    give(lock, hold, count, lease_ms)
    return 1, now_ms(), '', token, 1
  end
  local waiting = sweep(queue, alive)
  local place, by, was_first = place_of(hold), holder(lock), waiting and first(queue) or nil
  ticket = tonumber(ticket) or tonumber(waiting and redis.call('ZSCORE', queue, place))
  -- Not for the first bid of a hold that has the vote: its request runs for the second time, and
  -- the first time entered nothing (mutant `holder_is_entered`).
  if ticket or by ~= hold and (by or was_first) then
    if not was_first then
      -- Somebody may have deleted the queue alone.
      redis.call('DEL', alive)
    end
    -- A ticket in the request is set as it is, also if the place is at another here: the majority
    -- has agreed on it.
    ticket = ticket or next_ticket(queue)
    enter(queue, alive, place, ticket, tonumber(wait_ms))
  end
  local ahead = before(queue, place, by and place_of(by))
  if ahead and by ~= hold then
    if not by and was_first == place then
      -- Its ticket moved this place back from the front. The waiter that is first now was not
      -- woken.
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

----
-- ask: requests the vote, with or without a place in the queue. `count`: the value of the hold in
-- the record.
local function ask(
  lock, queue, alive, fence, hold, floor, ticket, count, lease_ms, keep_ms, wait_ms
)
  if place_of(hold) then
    return bid(lock, queue, alive, fence, hold, floor, ticket, count, lease_ms, keep_ms, wait_ms)
  end
  local code, ms, id, token =
    take(lock, queue, alive, fence, hold, floor, count, lease_ms, keep_ms)
  return code, ms, id, token, 0
end

----
-- recount: sets the count of a hold that excludes all others, if it has the vote. Returns what is
-- left of its lease, or nil.
local function recount(lock, hold, count)
  if redis.call('HEXISTS', lock, hold) == 0 then
    return nil
  end
  local ms = redis.call('PTTL', lock)
  if ms > 0 then
    -- Changes nothing. After a first write that takes no memory, a full server refuses no other.
    redis.call('PEXPIRE', lock, ms)
  end
  redis.call('HSET', lock, hold, count)
  return ms
end

----
-- renew: renews a record that only one hold has.

-- Keeps the vote, which `by` has with the count `entered`. If nobody has it: answers so, and gives
-- it only with `anew`. If it gave the vote at once and that answer were lost, the hold would never
-- learn that another may have had the lock (mutant `vote_is_given_anew_unasked`).
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
  -- First, as a full server would refuse the other writes (mutant `renewal_needs_room`).
  keep(lock, lease_ms)
  raise(fence, token, keep_ms)
  -- Usually the count is the same: one write less.
  if entered ~= count then
    redis.call('HSET', lock, hold, count)
  end
  return 1, now_ms(), ''
end

----
-- mark_ended: stores that a hold was ended by force, so that no renewal brings it back. Each entry
-- has an end of its own, after at least `marker_ms`, by this voter's clock.
local function mark_ended(revoked, hold, marker_ms)
  -- First, and also if there is no entry yet: after a first write that takes no memory, a full
  -- server refuses no other.
  local ms = math.max(tonumber(marker_ms), redis.call('PTTL', revoked))
  redis.call('PEXPIRE', revoked, ms)
  local until_ms, marks = now_ms() + marker_ms, redis.call('HGETALL', revoked)
  for at = 1, #marks, 2 do
    local its_ms = tonumber(marks[at + 1]) or 0
    if marks[at] == hold then
      until_ms = math.max(until_ms, its_ms)
    elseif its_ms < now_ms() then
      -- The key lives as long as its latest entry, so old ones would gather.
      redis.call('HDEL', revoked, marks[at])
    end
  end
  redis.call('HSET', revoked, hold, string.format('%.0f', until_ms))
  expire(revoked, ms)
end

----
-- shorten_place: ends a holder's place in the queue with its vote, so that the next is not behind
-- it.
local function shorten_place(alive, hold, ms)
  local place = place_of(hold)
  local ends = place and redis.call('ZSCORE', alive, place)
  if ends and tonumber(ends) > now_ms() + ms then
    redis.call('ZADD', alive, now_ms() + ms, place)
  end
end

----
-- list: waiters, readers and the latest token, for the scripts that inspect a lock.

-- The number of the latest hold; '' if there is none, or none that a script has written.
local function latest(fence)
  local number = redis.pcall('GET', fence)
  return type(number) == 'string' and number or ''
end

-- Adds an entry of three to a flat list.
local function list(entries, id, number, ms)
  local at = #entries
  entries[at + 1], entries[at + 2], entries[at + 3] = id, number, ms
end

-- The places in a queue that have not ended, in order, each with its ticket and the time left.
local function places(queue, alive)
  local all, at = redis.call('ZRANGE', queue, 0, -1, 'WITHSCORES'), -1
  return function()
    while true do
      at = at + 2
      local place, ticket = all[at], all[at + 1]
      if not place then
        return nil
      end
      local ms = tonumber(redis.call('ZSCORE', alive, place) or 0) - now_ms()
      if ms > 0 then
        return place, tonumber(ticket), ms
      end
    end
  end
end

----
-- clear: removes what no script of a lock has written. Only commands of operators do this.

-- Deletes keys of any type. Returns how many there were.
local function wipe(...)
  return redis.call('DEL', ...)
end

-- The reply of a command that reads a key. If the key has another type: nil, and deletes it.
local function readable(command, key, ...)
  local reply = redis.pcall(command, key, ...)
  if type(reply) ~= 'table' or not reply.err then
    return reply, 0
  end
  if not string.find(reply.err, 'WRONGTYPE', 1, true) then
    error(reply.err, 0)
  end
  return nil, wipe(key)
end

-- Deletes a key unless it is the record of a hold: one field, with a value that begins with a
-- count.
local function keep_hold(key)
  local record, gone = readable('HGETALL', key)
  if not record or #record == 0 then
    return gone
  end
  local hold, count = record[1], tonumber(string.match(record[2], '^%S+'))
  local is_hold = #record == 2 and hold ~= '' and count and count > 0
  return is_hold and 0 or wipe(key)
end

-- Deletes a key unless it has the type that this command reads.
local function keep_type(command, key, ...)
  local _, gone = readable(command, key, ...)
  return gone
end
