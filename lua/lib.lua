-- What scripts of several kinds are made of.

----
-- time: one moment for the whole of a script, by this voter's clock.
local asked_ms
local function now_ms()
  if not asked_ms then
    local time = redis.call('TIME')
    asked_ms = time[1] * 1000 + math.floor(time[2] / 1000)
  end
  return asked_ms
end

----
-- expire: gives a record that was just written its end, or takes it back: none stays without one.
local function expire(key, ms)
  local done = redis.pcall('PEXPIRE', key, ms)
  if type(done) == 'table' and done.err then
    redis.call('DEL', key)
    error(done.err, 0)
  end
end

----
-- publish: tells those who listen to a channel. `publish` is PUBLISH or SPUBLISH. Where the server
-- does not know the command, or does not allow it, nobody can listen that way either.
local function announce(publish, channel, message)
  local told = redis.pcall(publish, channel, message)
  if type(told) == 'table' and told.err then
    redis.call('PUBLISH', channel, message)
  end
end

----
-- each: runs `run` once per request, with what stands in KEYS and in the arguments before its own
-- entries: a request owns `keys_each` of KEYS and, behind the `shared` ones, `args_each` of the
-- arguments. It adds `width` entries, at most five, to the flat reply. One that raises an error, or
-- lacks an entry, answers -1, 0, the message, and harms no other: at a nil the server would end the
-- whole reply.
-- With one key more than the requests have, that is the fingerprint of this voter's data: the reply
-- has one entry more, what the data are called; '' where that is gone. A packed reply, one text,
-- costs the client less to read, and a packed argument less to write: the arguments behind the
-- shared ones may be one. Where there is no cmsgpack, as in voters inside a process, replies are
-- the list itself.
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

-- Who has the vote, and its count. In the record of a RReadWriteLock of Redisson a field `mode`
-- stands before the holds.
local function holder(lock)
  local record = redis.call('HGETALL', lock)
  if record[1] == 'mode' and record[3] then
    return record[3], record[4]
  end
  return record[1], record[2]
end

----
-- fence: the number of the latest hold that had this vote, which grows from one to the next. '' for
-- the floor, or for the token: the hold asks for none. '' for `keep_ms`: the number stays for ever.
local function store(fence, token, keep_ms)
  local text = string.format('%.0f', token)
  if keep_ms == '' then
    redis.call('SET', fence, text)
  else
    redis.call('SET', fence, text, 'PX', keep_ms)
  end
  return text
end

-- A hold has so many numbers, of which this is the last: tasks of its client may have it one after
-- the other, each with a number of its own. As `Token::BLOCK`.
local BLOCK = 64

local DAY_MS = 24 * 3600 * 1000

-- Whole numbers without leading zeros compare as their texts do, and that costs less than reading
-- them.
local function exceeds(number, other)
  return #number > #other or #number == #other and number > other
end

-- A floor no further ahead of this voter's clock than half of the time that a number is remembered:
-- when it has been forgotten, clocks that are right have passed it.
local most
local function bounded(floor, keep_ms)
  if not most then
    local ms = (tonumber(keep_ms) or DAY_MS) / 2
    most = string.format('%.0f', (now_ms() + ms) * 1000)
  end
  return exceeds(floor, most) and most or floor
end

-- The last number of the block after the latest, which is stored.
local function number_after(fence, latest, keep_ms)
  latest = tonumber(latest)
  if not (latest + BLOCK < 2 ^ 53) then
    -- From there on numbers are not told apart any more. No voter counts so far: somebody else
    -- wrote that. What is stored now is the floor, so that this is not said for ever.
    error('the fencing tokens of this lock are used up: they begin anew', 0)
  end
  return store(fence, latest + BLOCK, keep_ms)
end

-- The number of a hold that is given the vote now.
local function number(fence, floor, keep_ms)
  if floor == '' then
    return ''
  end
  floor = bounded(floor, keep_ms)
  -- One command, as the floor is nearly always above the latest.
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

-- The number of a hold that has the vote already.
local function number_again(fence, floor, keep_ms)
  local latest = floor ~= '' and redis.call('GET', fence)
  return latest or number(fence, floor, keep_ms)
end

-- The hold that has the vote goes by this number, which is not forgotten meanwhile. What is none,
-- or has another type, no lock has written: a hold does not end by it.
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
-- vote: gives the vote to one who excludes all others, and keeps it. What came as a
-- text is passed on as one: a server takes long to write a number.

-- Keeps a vote; never shortens what is left of its lease. To be the first write of a script: a
-- server that is full refuses that where it could take memory, and none that follows.
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
-- enter: gives a place its ticket, and lets it count for `wait_ms` from now on.

-- Puts a member into a set that lasts for `ms` at least, and never stands without an end. Where the
-- set is there, this passes on a server that is full.
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
-- queue: who waits for the vote, by ticket and then by place. `queue` has the tickets, `alive` has
-- until when each place counts, by this voter's clock. A place is one waiter's; each attempt made
-- from it is a hold of its own, `<place>.<number>`. It stays while a hold of it has the vote, so
-- that nobody gets a lower ticket meanwhile, and is passed over then.

local function place_of(hold)
  return string.match(hold, '^(.+)%.%d+$')
end

local function leave(place, ...)
  for _, key in ipairs({ ... }) do
    redis.call('ZREM', key, place)
  end
end

-- No place counts for longer than the longest lease from when it was asked from.
local LONGEST_MS = 24 * 3600 * 1000

-- Takes out the places whose waiters have not asked for too long, of `alive` and of these keys; and
-- those that count for longer than any can: the clock was ahead, or somebody else put them there.
local function drop_ended(alive, ...)
  local too_far = '(' .. now_ms() + LONGEST_MS
  for _, range in ipairs({ { '-inf', now_ms() }, { too_far, '+inf' } }) do
    for _, place in ipairs(redis.call('ZRANGEBYSCORE', alive, unpack(range))) do
      leave(place, alive, ...)
    end
  end
end

-- Takes out the places that count no more, also from `writers`, if any. Says whether there were
-- places at all.
local function sweep(queue, alive, writers)
  local places = redis.call('ZCARD', queue)
  if places == 0 then
    return false
  end
  local counting = redis.call('ZCOUNT', alive, '(' .. now_ms(), now_ms() + LONGEST_MS)
  if counting == places and redis.call('ZCARD', alive) == places then
    return true
  end
  drop_ended(alive, queue, writers)
  if redis.call('ZCARD', queue) ~= redis.call('ZCARD', alive) then
    -- Somebody deleted one of the two. Everybody comes back, each with its ticket.
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
-- call: wakes who waits in a queue, on the channel of the client. What the names of these channels
-- begin with is the first of ARGV, for all requests.
local calls = ARGV[1]

-- Returns how many hear it, of the clients of this server.
local function call(place)
  return redis.call('PUBLISH', calls .. string.match(place, '^[^:]*'), place)
end

-- The vote is free: calls the first who waits, unless that is `place`, which knows. Says whether
-- anybody waits. With `alive`, a place that is owed no turn in order is taken out if its client
-- does not hear the call: the client has gone, or it comes back by itself. Not for servers of a
-- cluster: a client may listen at another one.
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
-- take: asks for the vote from no place in the queue, and not past those who wait there. `count` is
-- what the record has of the hold.
local function take(lock, queue, alive, fence, hold, floor, count, lease_ms, keep_ms)
  if redis.call('EXISTS', lock, queue) > 0 then
    local head = sweep(queue, alive) and first(queue)
    local by = holder(lock)
    if by and by ~= hold then
      return 0, redis.call('PTTL', lock), by, ''
    end
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

----
-- ask: asks for the vote, from a place in the queue or from none. `count` is what the record has of
-- the hold.
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
-- recount: sets the count of a hold that excludes all others, where it has the vote: what is left
-- of its lease then.
local function recount(lock, hold, count)
  if redis.call('HEXISTS', lock, hold) == 0 then
    return nil
  end
  local ms = redis.call('PTTL', lock)
  if ms > 0 then
    -- Changes nothing: after a first write a server that is full refuses no other.
    redis.call('PEXPIRE', lock, ms)
  end
  redis.call('HSET', lock, hold, count)
  return ms
end

----
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

----
-- mark_ended: marks a hold that was ended by force, so that no renewal brings it back. Each mark
-- has an end of its own, after `marker_ms` at least, by this voter's clock.
local function mark_ended(revoked, hold, marker_ms)
  -- First, and also where there is no mark yet: after a first write a server that is full refuses
  -- no other.
  local ms = math.max(tonumber(marker_ms), redis.call('PTTL', revoked))
  redis.call('PEXPIRE', revoked, ms)
  local until_ms, marks = now_ms() + marker_ms, redis.call('HGETALL', revoked)
  for at = 1, #marks, 2 do
    local its_ms = tonumber(marks[at + 1]) or 0
    if marks[at] == hold then
      until_ms = math.max(until_ms, its_ms)
    elseif its_ms < now_ms() then
      redis.call('HDEL', revoked, marks[at])
    end
  end
  redis.call('HSET', revoked, hold, string.format('%.0f', until_ms))
  expire(revoked, ms)
end

----
-- shorten_place: a holder's place in the queue counts for no longer than its vote.
local function shorten_place(alive, hold, ms)
  local place = place_of(hold)
  local ends = place and redis.call('ZSCORE', alive, place)
  if ends and tonumber(ends) > now_ms() + ms then
    redis.call('ZADD', alive, now_ms() + ms, place)
  end
end

----
-- list: who waits, who reads and the latest token, for those who inspect a lock.

-- The number of the latest hold; '' where there is none, or none that a script has written.
local function latest(fence)
  local number = redis.pcall('GET', fence)
  return type(number) == 'string' and number or ''
end

-- Adds an entry of three to a flat list.
local function list(entries, id, number, ms)
  local at = #entries
  entries[at + 1], entries[at + 2], entries[at + 3] = id, number, ms
end

-- The places in a queue that count still, in order, each with its ticket and for how long it does.
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
-- clear: takes out what no script of a lock has written. Only what an operator asks for does this.

-- Deletes keys of whatever type; how many there were.
local function wipe(...)
  return redis.call('DEL', ...)
end

-- What a command reads from a key; nil, and no more key, where that has another type.
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

-- A hold: one field, which begins with a count.
local function keep_hold(key)
  local record, gone = readable('HGETALL', key)
  if not record or #record == 0 then
    return gone
  end
  local hold, count = record[1], tonumber(string.match(record[2], '^%S+'))
  local is_hold = #record == 2 and hold ~= '' and count and count > 0
  return is_hold and 0 or wipe(key)
end

-- What this command reads: it is of the right type.
local function keep_type(command, key, ...)
  local _, gone = readable(command, key, ...)
  return gone
end
