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
