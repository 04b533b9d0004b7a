-- rw/acquire: asks for the vote, to read or to write, by itself or from a place in the queue.
-- KEYS, for each request: writer, readers, queue, alive, writers, fence
-- ARGV, for all requests: calls, mode, turn, lease_ms, keep_ms, wait_ms
-- ARGV, for each request: hold, floor, ticket
--   mode: 'read' or 'write'; turn: 'first', 'last', or 'next' for one behind those who came before
--   floor: the least the token of a write may be, '' for none; keep_ms: how long the fence is
--   remembered; ticket '': none is fixed yet; wait_ms: how long the place of the hold counts, if it
--   has one
-- returns, for each request: code, ms, id, token, ticket
--   1, this voter's clock, '', token, ticket  granted; the clock in ms since 1970; token '' of a
--                                             read; ticket -1 where there is no place
--   0, lease left in ms, holder, '', ticket   refused: the writer, or the last of the readers
--   3, time left in ms, place, '', ticket     refused: that place comes first, and perhaps others
--   -1, 0, message, '', ''                    this request failed, alone
-- atomic, because two that look before either has entered would both be let in.
local mode, turn, lease_ms, keep_ms, wait_ms = unpack(ARGV, 2, 6)

-- Readers at the last turn come behind every writer, also behind those still to come.
local LAST = '1000000000000'
local TURNS = { first = 0, last = tonumber(LAST) }

-- The last of those who would stand before a newcomer, but for readers at the last turn.
local function last_of(among)
  local count = redis.call('ZCOUNT', among, '-inf', '(' .. LAST)
  if count > 0 then
    return redis.call('ZRANGE', among, count - 1, count - 1, 'WITHSCORES')
  end
  return {}
end

-- The last of those `among` that stands before this one in the queue, not counting the holder's.
local function before(among, queue, place, ticket, holding)
  local rank = redis.call('ZRANK', queue, place)
  for at = redis.call('ZCOUNT', among, '-inf', ticket) - 1, 0, -1 do
    local other = redis.call('ZRANGE', among, at, at)[1]
    if other ~= holding and (redis.call('ZRANK', queue, other) or rank) < rank then
      return other
    end
  end
end

-- Enters a place, and a writer's also among the writers.
local function stand(queue, alive, writers, place, ticket)
  enter(queue, alive, place, ticket, tonumber(wait_ms))
  if mode == 'write' then
    put(writers, ticket, place, tonumber(wait_ms))
  end
end

-- Gives the vote that nobody else has, or keeps it: says the token.
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
    -- What is free for a newcomer is given without an entry, and given again without one.
    local token = grant(writer, readers, fence, hold, floor)
    return 1, now_ms(), '', token, place and (TURNS[turn] or 1) or -1
  end
  local waiting = sweep(queue, alive, writers)
  sweep_readers(readers)
  local holding, ms, by = in_the_way(writer, readers, hold, mode)
  -- Under the own write the queue does not count, no more than for a renewal.
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
        -- It went back in the queue: whoever it stood in the way of was not called.
        call_next(writer, readers, queue, writers, mode, place)
      end
    end
  else
    ticket = -1
  end
  if ahead and not has then
    return 3, left_ms(alive, ahead), ahead, '', ticket
  end
  if holding then
    return 0, ms, holding, '', ticket
  end
  local token = grant(writer, readers, fence, hold, floor, by)
  return 1, now_ms(), '', token, ticket
end

return each(6, 6, 3, 5, acquire)
