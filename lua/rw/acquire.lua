-- rw/acquire: asks for the vote, to read or to write, by itself or from a place in the queue.
-- KEYS, for each request: writer, readers, queue, alive, writers, fence
-- ARGV, for each request: hold, mode, count, lease_ms, floor, keep_ms, ticket, turn, wait_ms, calls
--   mode: 'read' or 'write'; ticket '': none is fixed yet
--   floor: the least the token of a write may be, '' for none; keep_ms: how long the fence is
--   remembered
--   turn: 'first', 'last', or 'next' for one behind those who came before; wait_ms: how long the
--   place of the hold counts, if it has one
-- returns, for each request: code, ms, text; from a place with the ticket and a blank before text
--   1, this voter's clock, token  granted; the clock in ms since 1970; token '' of a read
--   0, lease left in ms, holder   refused: the writer, or the last of the readers
--   3, time left in ms, place     refused: of those that stand in the way that place is the last
--   -1, 0, message                this request failed, alone
-- atomic, because two that look before either has entered would both be let in.

-- Readers at the last turn come behind every writer, also behind those still to come.
local LAST = '1000000000000'
local TURNS = { first = '0', last = LAST }

-- The last of those who would stand before a newcomer, but for readers at the last turn.
local function last_of(places)
  local count = redis.call('ZCOUNT', places, '-inf', '(' .. LAST)
  if count > 0 then
    return redis.call('ZRANGE', places, count - 1, count - 1, 'WITHSCORES')
  end
  return {}
end

-- The last of `places` that stands before this one in the queue, not counting the holder's.
local function before(places, queue, place, ticket, holder)
  local rank = redis.call('ZRANK', queue, place)
  for at = redis.call('ZCOUNT', places, '-inf', ticket) - 1, 0, -1 do
    local other = redis.call('ZRANGE', places, at, at)[1]
    if other ~= holder and (redis.call('ZRANK', queue, other) or rank) < rank then
      return other
    end
  end
end

-- Enters a place, and a writer's also among the writers.
local function stand(queue, alive, writers, mode, place, ticket, wait_ms)
  enter(queue, alive, place, ticket, wait_ms)
  if mode == 'write' then
    put(writers, ticket, place, wait_ms)
  end
end

local function acquire(writer, readers, queue, alive, writers, fence,
                       hold, mode, count, lease_ms, floor, keep_ms, ticket, turn, wait_ms, calls)
  local waiting = sweep(queue, alive, writers)
  sweep_readers(readers)
  local holder, ms, by = in_the_way(writer, readers, hold, mode)
  -- Under the own write the queue does not count, no more than for a renewal.
  local has = by or write_of(hold) or (holder or waiting) and redis.call('ZSCORE', readers, hold)
  local places = mode == 'read' and writers or queue
  local last = waiting and turn ~= 'first' and last_of(places) or {}
  local place, ahead, prefix = place_of(hold), last[1], ''
  if place then
    local former = waiting and redis.call('ZSCORE', queue, place)
    local entered = ticket ~= '' and ticket or former
    local next_ticket = function()
      return tostring(tonumber(waiting and last_of(queue)[2] or 0) + 1)
    end
    ticket = entered or TURNS[turn] or next_ticket()
    -- What is free for a newcomer is given without an entry, and given again without one.
    if entered or not has and (holder or ahead) then
      if not waiting then
        -- Somebody may have deleted the queue alone.
        redis.call('DEL', alive, writers)
      end
      stand(queue, alive, writers, mode, place, ticket, tonumber(wait_ms))
      ahead = before(places, queue, place, ticket, holder and place_of(holder))
      if ahead and former and former ~= ticket then
        -- It went back in the queue: whoever it stood in the way of was not called.
        call_next(writer, readers, queue, writers, mode, place, calls)
      end
    end
    prefix = ticket .. ' '
  end
  if ahead and not has then
    return 3, left_ms(alive, ahead), prefix .. ahead
  end
  if holder then
    return 0, ms, prefix .. holder
  end
  local token = grant(writer, readers, hold, mode, count, lease_ms, function(has_it)
    return number(fence, floor, keep_ms, has_it)
  end)
  return 1, now_ms(), prefix .. token
end

return each(6, 10, acquire)
