-- mutex/release: sets the hold count; at 0 gives the vote back, leaves the queue, and tells whoever
-- is next.
-- KEYS, for each request: lock, queue, alive
-- ARGV, for each request: hold, count, place, channel, publish, calls
--   place '': stays in the queue; channel '': only those in the queue are told; publish: PUBLISH,
--   or SPUBLISH where the channel has a slot
-- returns, for each request: code, ms, text
--   1, lease left in ms, ''       done (0 ms: given back)
--   0, lease left in ms, holder   this hold has no vote here (-2 ms and '': nobody has)
--   -1, 0, message                this request failed, alone
-- atomic, because the vote may have passed to another hold since the caller looked.
local function release(lock, queue, alive, hold, count, place, channel, publish, calls)
  local by = redis.call('HKEYS', lock)[1]
  if tonumber(count) > 0 then
    if by ~= hold then
      return 0, redis.call('PTTL', lock), by or ''
    end
    local ms = redis.call('PTTL', lock)
    if ms > 0 then
      -- Changes nothing: after a first write a server that is full refuses no other.
      redis.call('PEXPIRE', lock, ms)
    end
    redis.call('HSET', lock, hold, count)
    return 1, ms, ''
  end
  sweep(queue, alive)
  local was_first = place ~= '' and first(queue) == place
  if place ~= '' then
    leave(place, queue, alive)
  end
  if by == hold then
    redis.call('DEL', lock)
    tell(queue, place_of(hold), channel, calls, publish)
    return 1, 0, ''
  end
  if was_first and not by then
    tell(queue, place, channel, calls, publish)
  end
  return 0, redis.call('PTTL', lock), by or ''
end

return each(3, 6, release)
