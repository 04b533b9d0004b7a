-- The scripts of the read/write lock.

----
-- rw: one writer, or readers with a deadline each, so that a dead reader is gone at its own
-- deadline while others read on. `readers` has the deadlines, by this voter's clock, and expires
-- with the last. A hold `<write hold>/<number>` reads under its own owner's write. `writers` has
-- the places of the queue that wait to write.
local function write_of(hold)
  return string.match(hold, '^(.+)/%d+$')
end

-- Removes the readers whose leases have ended.
local function sweep_readers(readers)
  for _, hold in ipairs(redis.call('ZRANGEBYSCORE', readers, '-inf', '(' .. now_ms())) do
    redis.call('ZREM', readers, hold)
  end
end

-- The reader whose lease ends last, but not one that reads under `write`, and what is left of it.
local function last_reader(readers, write)
  local at = 0
  repeat
    at = at - 1
    local last = redis.call('ZRANGE', readers, at, at, 'WITHSCORES')
    if last[1] and not (write and write_of(last[1]) == write) then
      return last[1], tonumber(last[2]) - now_ms()
    end
  until not last[1]
end

-- The hold that keeps `hold` from having the vote, and what is left of its lease. If there is none:
-- nil, nil, the writer that is `hold` or its own write, and its count.
local function in_the_way(writer, readers, hold, mode)
  local by, count = holder(writer)
  if by and by ~= hold and by ~= write_of(hold) then
    return by, redis.call('PTTL', writer)
  end
  if mode == 'write' and by ~= hold then
    return last_reader(readers, hold)
  end
  return nil, nil, by, count
end

-- Gives the vote to a reader, or with `only_kept` only keeps it: returns whether the reader has it
-- now. Never shortens its lease, and touches no other reader's. The key ends with the last of its
-- readers. Keeping a vote begins with PEXPIREAT, for the reason in `keep`.
local function share(readers, hold, lease_ms, only_kept)
  local now, former = now_ms(), redis.call('ZSCORE', readers, hold)
  local ends = math.max(now + lease_ms, tonumber(former or 0))
  if former then
    redis.call('PEXPIREAT', readers, math.max(ends, now + redis.call('PTTL', readers)))
    redis.call('ZADD', readers, ends, hold)
    return true
  end
  if only_kept then
    return false
  end
  redis.call('ZADD', readers, ends, hold)
  if redis.call('PTTL', readers) < ends - now then
    local done = redis.pcall('PEXPIREAT', readers, ends)
    if type(done) == 'table' and done.err then
      redis.call('ZREM', readers, hold)
      error(done.err, 0)
    end
  end
  return true
end

-- A reader whose lease ends then has gone. The key must end with the last of the others, and does
-- so already if one of them ends as late.
local function refit(readers, ends)
  if redis.call('ZCOUNT', readers, ends, '+inf') == 0 then
    local _, ms = last_reader(readers)
    if ms then
      redis.call('PEXPIREAT', readers, now_ms() + math.max(ms, 1))
    end
  end
end

-- Takes the vote from a hold. Returns how it had it, 'read' or 'write', and what was left of its
-- lease; nil if it had none. A read whose lease has ended had none.
local function take_back(writer, readers, hold)
  local ends = redis.call('ZSCORE', readers, hold)
  if ends then
    local ms = tonumber(ends) - now_ms()
    redis.call('ZREM', readers, hold)
    refit(readers, ends)
    if ms >= 0 then
      return 'read', ms
    end
  end
  if redis.call('HEXISTS', writer, hold) == 1 then
    local ms = redis.call('PTTL', writer)
    redis.call('DEL', writer)
    return 'write', ms
  end
end

----
-- call_next: wakes waiters of a read/write lock.

-- A vote or a place is gone that others may have waited for. Wakes the first in the queue if that
-- is a writer and nobody holds. If a writer has gone, wakes all readers before the first writer:
-- they can all have the vote. Does not wake `place`, whose waiter gave the vote back and knows.
local function call_next(writer, readers, queue, writers, gone, place)
  if redis.call('EXISTS', writer) == 1 then
    return
  end
  local next_writer = first(writers)
  local rank = next_writer and redis.call('ZRANK', queue, next_writer) or -1
  if rank == 0 then
    if next_writer ~= place and redis.call('EXISTS', readers) == 0 then
      call(next_writer)
    end
  elseif gone == 'write' then
    for _, reader in ipairs(redis.call('ZRANGE', queue, 0, rank >= 0 and rank - 1 or -1)) do
      if reader ~= place then
        call(reader)
      end
    end
  end
end

----
-- rw/acquire: requests the vote, to read or to write, with or without a place in the queue.
-- libraries: expire, time, fence, holder, vote, queue, call, enter, rw, call_next, each
-- KEYS, for each request: writer, readers, queue, alive, writers, fence
-- ARGV, for all requests: calls, mode, turn, lease_ms, keep_ms, wait_ms
-- ARGV, for each request: hold, floor, ticket
--   mode: 'read' or 'write'; turn: 'first', 'last', or 'next' for behind all who came before
--   floor: the least the token of a write may be, '' for none; keep_ms: how long the fence is kept
--   ticket '': none is agreed yet; wait_ms: how long the place of the hold is kept, if it has one
-- returns, for each request: code, ms, id, token, ticket
--   1, this voter's clock, '', token, ticket  granted; the clock in ms since 1970; token '' of a
--                                             read; ticket -1 where there is no place
--   0, lease left in ms, holder, '', ticket   refused: the writer, or the last of the readers
--   3, time left in ms, place, '', ticket     refused: that place comes first, and perhaps others
--   -1, 0, message, '', ''                    this request failed, alone
-- atomic, because two that look before either has entered would both be let in.
local mode, turn, lease_ms, keep_ms, wait_ms = unpack(ARGV, 2, 6)

-- Readers at the last turn come behind every writer, also behind later ones. Whom a reader lets
-- pass is only decided by its ticket: with a rule for each preference, users of different ones
-- could wait for each other for ever.
local LAST = '1000000000000'
local TURNS = { first = 0, last = tonumber(LAST) }

-- The last place that comes before a newcomer. Readers at the last turn do not.
local function last_of(among)
  local count = redis.call('ZCOUNT', among, '-inf', '(' .. LAST)
  if count > 0 then
    return redis.call('ZRANGE', among, count - 1, count - 1, 'WITHSCORES')
  end
  return {}
end

-- The last place of `among` that comes before this one in the queue, without the holder's.
local function before(among, queue, place, ticket, holding)
  local rank = redis.call('ZRANK', queue, place)
  for at = redis.call('ZCOUNT', among, '-inf', ticket) - 1, 0, -1 do
    local other = redis.call('ZRANGE', among, at, at)[1]
    if other ~= holding and (redis.call('ZRANK', queue, other) or rank) < rank then
      return other
    end
  end
end

-- Enters a place; the place of a writer also into `writers`.
local function stand(queue, alive, writers, place, ticket)
  enter(queue, alive, place, ticket, tonumber(wait_ms))
  if mode == 'write' then
    put(writers, ticket, place, tonumber(wait_ms))
  end
end

-- Gives the vote that nobody else has, or keeps it. Returns the token.
local function grant(writer, readers, fence, hold, floor, by)
  if mode == 'read' then
    share(readers, hold, tonumber(lease_ms))
    return ''
  end
  if by then
    keep(writer, lease_ms)
    return number_again(fence, floor, keep_ms)
  end
  local token = number(fence, floor, keep_ms)
  give(writer, hold, '1', lease_ms)
  return token
end

local function acquire(key, args, arg)
  local writer, readers, queue, alive, writers, fence = unpack(KEYS, key + 1, key + 6)
  local hold, floor, ticket = unpack(args, arg + 1, arg + 3)
  local place = place_of(hold)
  if ticket == '' and redis.call('EXISTS', writer, readers, queue) == 0 then
    -- A free lock is granted without an entry: an uncontended lock costs no queue.
    local token = grant(writer, readers, fence, hold, floor)
    return 1, now_ms(), '', token, place and (TURNS[turn] or 1) or -1
  end
  local waiting = sweep(queue, alive, writers)
  sweep_readers(readers)
  local holding, ms, by = in_the_way(writer, readers, hold, mode)
  -- A read under its own write does not wait behind the queue, which waits for that write itself.
  -- Nor does a request of a hold that has the vote.
  local has = by or write_of(hold) or (holding or waiting) and redis.call('ZSCORE', readers, hold)
  local among = mode == 'read' and writers or queue
  local last = waiting and turn ~= 'first' and last_of(among) or {}
  local ahead = last[1]
  if place then
    local former = waiting and tonumber(redis.call('ZSCORE', queue, place))
    local entered = tonumber(ticket) or former
    ticket = entered or TURNS[turn] or tonumber(waiting and last_of(queue)[2] or 0) + 1
    if entered or not has and (holding or ahead) then
      if not waiting then
        -- Somebody may have deleted the queue alone.
        redis.call('DEL', alive, writers)
      end
      stand(queue, alive, writers, place, ticket)
      ahead = before(among, queue, place, ticket, holding and place_of(holding))
      if ahead and former and former ~= ticket then
        -- It moved back in the queue. The waiters that it was in the way of were not woken.
        call_next(writer, readers, queue, writers, mode, place)
      end
    end
  else
    ticket = -1
  end
  -- To a newcomer without a place the holder is named first: the place ahead may be the holder's
  -- own.
  if ahead and not has and (place or not holding) then
    return 3, left_ms(alive, ahead), ahead, '', ticket
  end
  if holding then
    return 0, ms, holding, '', ticket
  end
  local token = grant(writer, readers, fence, hold, floor, by)
  return 1, now_ms(), '', token, ticket
end

return each(6, 6, 3, 5, acquire)

----
-- rw/renew: keeps the vote, or answers that the hold has none; sets the count of a write, and its
-- token if the voter has a lower one.
-- libraries: expire, time, fence, holder, vote, renew, rw, each
-- KEYS, for each request: writer, readers, revoked, fence
-- ARGV, for all requests: mode, lease_ms, keep_ms
-- ARGV, for each request: hold, count, token, anew
--   token: '' for none; keep_ms: how long the fence is kept; anew '1': the hold gets the vote if
--   nobody is in the way
-- returns, for each request: code, ms, id
--   1, this voter's clock, ''     granted; the clock in ms since 1970
--   0, lease left in ms, holder   refused: the writer, or the last of the readers
--   2, 0, ''                      the hold was ended by force and gets no vote again
--   4, 0, ''                      the hold has no vote, and it was not given
--   -1, 0, message                this request failed, alone
-- atomic, because a forced release between the check and the grant would be undone by it.
local mode, lease_ms, keep_ms = unpack(ARGV, 1, 3)

local function renew(key, args, arg)
  local writer, readers, revoked, fence = unpack(KEYS, key + 1, key + 4)
  local hold, count, token, anew = unpack(args, arg + 1, arg + 4)
  if redis.call('HEXISTS', revoked, hold) == 1 then
    return 2, 0, ''
  end
  sweep_readers(readers)
  local holding, ms, by, entered = in_the_way(writer, readers, hold, mode)
  if holding then
    return 0, ms, holding
  end
  if mode == 'read' then
    if share(readers, hold, tonumber(lease_ms), anew == '') then
      return 1, now_ms(), ''
    end
    return 4, 0, ''
  end
  return renew_only(writer, fence, lease_ms, keep_ms, hold, count, token, by, entered, anew)
end

return each(4, 3, 4, 3, renew)

----
-- rw/release: sets the count of a write; at 0 gives the vote back, leaves the queue, and wakes the
-- next waiters.
-- libraries: time, holder, recount, queue, call, rw, call_next, each
-- KEYS, for each request: writer, readers, queue, alive, writers
-- ARGV, for all requests: calls
-- ARGV, for each request: hold, count, place
--   place '': stays in the queue
-- returns, for each request: code, ms, id
--   1, lease left in ms, ''       done (0 ms: given back)
--   0, lease left in ms, writer   this hold has no vote here (-2 ms and '': nobody writes)
--   -1, 0, message                this request failed, alone
-- atomic, because the vote may have passed to another hold since the caller looked.
local function recount_any(writer, readers, hold, count)
  sweep_readers(readers)
  local ms = recount(writer, hold, count)
  if ms then
    return 1, ms, ''
  end
  local ends = redis.call('ZSCORE', readers, hold)
  if ends then
    return 1, tonumber(ends) - now_ms(), ''
  end
  return 0, redis.call('PTTL', writer), holder(writer) or ''
end

local function release(key, args, arg)
  local writer, readers, queue, alive, writers = unpack(KEYS, key + 1, key + 5)
  local hold, count, place = unpack(args, arg + 1, arg + 3)
  if count ~= '0' then
    return recount_any(writer, readers, hold, count)
  end
  local waiting = sweep(queue, alive, writers)
  if waiting then
    -- Otherwise a dead reader would keep the next writer from being woken.
    sweep_readers(readers)
  end
  local gone = take_back(writer, readers, hold)
  local waited = waiting and place ~= '' and redis.call('ZSCORE', queue, place)
  if waiting and (gone or waited) then
    local wrote = gone == 'write' or waited and redis.call('ZSCORE', writers, place)
    leave(place, queue, alive, writers)
    call_next(writer, readers, queue, writers, wrote and 'write' or 'read', place_of(hold))
  end
  if gone then
    return 1, 0, ''
  end
  return 0, redis.call('PTTL', writer), holder(writer) or ''
end

return each(5, 1, 3, 3, release)

----
-- rw/shorten: ends the lease of a hold that reads sooner, and its place with it; never later.
-- libraries: time, queue, shorten_place, each
-- KEYS, for each request: writer, readers, alive
--   writer: so that it leaves in order with the other requests of its hold, which begin with that
-- ARGV, for all requests: none
-- ARGV, for each request: hold, lease_ms
-- returns, for each request: code, ms, id
--   1, lease left in ms, ''   done
--   0, -2, ''                 this hold has no vote here
--   -1, 0, message            this request failed, alone
-- atomic, because another reader may come between the new end and that of the key.
local function shorten(key, args, arg)
  local writer, readers, alive = unpack(KEYS, key + 1, key + 3)
  local hold, lease_ms = unpack(args, arg + 1, arg + 2)
  local former = redis.call('ZSCORE', readers, hold)
  former = tonumber(former)
  if not former or former < now_ms() then
    return 0, -2, ''
  end
  local until_ms = math.min(former, now_ms() + tonumber(lease_ms))
  -- First, as a full server refuses the other write only before a first one.
  redis.call('PEXPIRE', readers, redis.call('PTTL', readers))
  redis.call('ZADD', readers, until_ms, hold)
  local last = redis.call('ZRANGE', readers, -1, -1, 'WITHSCORES')[2]
  redis.call('PEXPIREAT', readers, math.max(last, now_ms() + 1))
  shorten_place(alive, hold, until_ms - now_ms())
  return 1, until_ms - now_ms(), ''
end

return each(3, 0, 2, 3, shorten)

----
-- rw/force_release: ends one named hold, whoever asks, and stores that, so that no renewal brings
-- it back.
-- libraries: expire, time, mark_ended, holder, queue, call, rw, call_next, each
-- KEYS, for each request: writer, readers, revoked, queue, alive, writers
-- ARGV, for all requests: calls
-- ARGV, for each request: hold, marker_ms
-- returns, for each request: code, ms, id
--   1, lease taken away in ms, ''   the hold had the vote, and has it no more
--   0, lease left in ms, writer     marked; the hold had no vote here (-2 ms and '': nobody writes)
--   -1, 0, message                  this request failed, alone
-- atomic, because a renewal between the mark and the deletion would leave one without the other.
local function force_release(key, args, arg)
  local writer, readers, revoked, queue, alive, writers = unpack(KEYS, key + 1, key + 6)
  local hold, marker_ms = unpack(args, arg + 1, arg + 2)
  mark_ended(revoked, hold, marker_ms)
  sweep_readers(readers)
  sweep(queue, alive, writers)
  local gone, ms = take_back(writer, readers, hold)
  local place = place_of(hold) or ''
  local wrote = gone == 'write' or redis.call('ZSCORE', writers, place)
  leave(place, queue, alive, writers)
  call_next(writer, readers, queue, writers, wrote and 'write' or 'read')
  if gone then
    return 1, ms, ''
  end
  return 0, redis.call('PTTL', writer), holder(writer) or ''
end

return each(6, 1, 2, 3, force_release)

----
-- rw/clear: removes all waiters, and what is no record of this lock; leaves holds and token.
-- libraries: clear, each
-- KEYS, for each request: writer, readers, revoked, fence, queue, alive, writers
-- ARGV, for all requests: none
-- ARGV, for each request: none
-- returns, for each request: code, ms, id
--   1, 0, ''         something was removed
--   0, 0, ''         there was nothing
--   -1, 0, message   this request failed, alone
-- atomic, because what is written between a look and its deletion would be lost.
local function clear(key)
  local writer, readers, revoked, fence, queue, alive, writers = unpack(KEYS, key + 1, key + 7)
  local gone = wipe(queue, alive, writers) + keep_hold(writer) + keep_type('ZCARD', readers)
  gone = gone + keep_type('HEXISTS', revoked, '') + keep_type('GET', fence)
  return math.min(gone, 1), 0, ''
end

return each(7, 0, 0, 3, clear)

----
-- rw/inspect: returns who has the vote, who waits and the latest token; changes nothing.
-- libraries: time, holder, queue, list, each
-- KEYS, for each request: writer, readers, queue, alive, writers, fence
-- ARGV, for all requests: none
-- ARGV, for each request: none
-- returns, for each request: code, ms, id, count, more
--   1, lease left in ms, writer, count, more   somebody writes (-1 ms: the record has no expiry)
--   0, -2, '', 0, more                         nobody does
--   -1, 0, message, '', ''                     this request failed, alone
--   more: lists of the holds that read, the places that wait to write, and those that wait to read;
--   and the token of the latest write, '' if there is none
--   in a list, in order: hold or place, ticket (0 for a hold), time left in ms
-- atomic, because holders, leases and queue must belong together.
local function inspect(key)
  local writer, readers, queue, alive, writers, fence = unpack(KEYS, key + 1, key + 6)
  local by, count = holder(writer)
  local held, reading, to_write, to_read = {}, {}, {}, {}
  local holds = redis.call('ZRANGE', readers, 0, -1, 'WITHSCORES')
  for at = 1, #holds, 2 do
    local hold, ms = holds[at], tonumber(holds[at + 1]) - now_ms()
    if ms >= 0 then
      list(reading, hold, 0, ms)
      held[place_of(hold) or ''] = true
    end
  end
  held[by and place_of(by) or ''] = true
  for place, ticket, ms in places(queue, alive) do
    if not held[place] then
      list(redis.call('ZSCORE', writers, place) and to_write or to_read, place, ticket, ms)
    end
  end
  local more = { reading, to_write, to_read, latest(fence) }
  if not by then
    return 0, -2, '', 0, more
  end
  return 1, redis.call('PTTL', writer), by, tonumber(count) or 0, more
end

return each(6, 0, 0, 5, inspect)
