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

-- A place goes from one of the two to the other.
local function move_place(place, from, to)
  local ticket = redis.call('ZSCORE', from, place)
  if ticket then
    local ms = redis.call('PTTL', from)
    redis.call('ZREM', from, place)
    put(to, ticket, place, ms)
  end
end
