-- semaphore/release: at count 0 gives back what the hold has, leaves the queue, and calls who
-- is the first in it.
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
