-- mutex/release: sets the hold count; at 0 gives the vote back, leaves the queue, and tells whoever
-- is next.
-- KEYS, for each request: lock, queue, alive
-- ARGV, for all requests: calls, aloud, publish
-- ARGV, for each request: hold, count, place, channel
--   place '': stays in the queue; channel '': only those in the queue are told; aloud '1': those on
--   the channel also where somebody in the queue is
-- returns, for each request: code, ms, id
--   1, lease left in ms, heard    done (0 ms: given back); heard: how many listen on the channel,
--                                 '' for one or none
--   0, lease left in ms, holder   this hold has no vote here (-2 ms and '': nobody has)
--   -1, 0, message                this request failed, alone
-- atomic, because the vote may have passed to another hold since the caller looked.
local function release(key, args, arg)
  local lock, queue, alive = unpack(KEYS, key + 1, key + 3)
  local hold, count, place, channel = unpack(args, arg + 1, arg + 4)
  if count ~= '0' then
    local ms = recount(lock, hold, count)
    if ms then
      return 1, ms, ''
    end
    return 0, redis.call('PTTL', lock), holder(lock) or ''
  end
  local had = redis.call('HDEL', lock, hold) == 1
  local waiting = sweep(queue, alive)
  local was_first = waiting and place ~= '' and first(queue) == place
  if waiting and place ~= '' then
    leave(place, queue, alive)
  end
  if had then
    local called = waiting and call_first(queue, place_of(hold), not is_sharded and alive)
    return 1, 0, tell(channel, called)
  end
  local by = holder(lock)
  if was_first and not by then
    tell(channel, call_first(queue, place, not is_sharded and alive))
  end
  return 0, redis.call('PTTL', lock), by or ''
end

return each(3, 3, 4, 3, release)
