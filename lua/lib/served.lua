-- served: the queue of a semaphore. A place that is given permits goes from `queue` to `served`,
-- with its ticket: nobody gets a lower one while it may have to give them back and go on waiting.
-- `alive` has until when the places of both count.

-- Takes out the places that count no more. Says whether there are any, in either.
local function sweep_places(queue, served, alive)
  if redis.call('EXISTS', queue, served) == 0 then
    return false
  end
  drop_ended(alive, queue, served)
  local places = redis.call('ZCARD', queue) + redis.call('ZCARD', served)
  if places ~= redis.call('ZCARD', alive) then
    -- Somebody deleted one of them. Everybody comes back, each with its ticket.
    redis.call('DEL', queue, served, alive)
    return false
  end
  return places > 0
end

-- The ticket of a place, nil where there is none.
local function ticket_of(place, queue, served)
  local score = redis.call('ZSCORE', served, place)
  return tonumber(redis.call('ZSCORE', queue, place)) or score and math.floor(score / 1e6)
end

-- What a place goes by in `served`: its ticket, and behind it the last six digits of the attempt.
local function score_of(ticket, hold)
  return ticket * 1e6 + string.match(hold, '%d+$') % 1e6
end

-- This attempt was given permits.
local function serve(place, hold, queue, served, alive)
  local ticket = redis.call('ZSCORE', queue, place)
  if not ticket then
    -- It counted for no time at all.
    return
  end
  redis.call('ZREM', queue, place)
  put(served, score_of(ticket, hold), place, redis.call('PTTL', alive))
end

-- This attempt has none, and its place goes on waiting. Nothing to a later attempt.
local function serve_no_more(place, hold, queue, served, alive)
  local score, ticket = redis.call('ZSCORE', served, place), ticket_of(place, queue, served)
  if score and tonumber(score) == score_of(ticket, hold) then
    redis.call('ZREM', served, place)
    put(queue, ticket, place, redis.call('PTTL', alive))
  end
end
