-- mutex/force_release: ends one named hold, whoever asks, and marks it: no renewal brings it back.
-- KEYS, for each request: lock, revoked, queue, alive
-- ARGV, for each request: hold, marker_ms, channel, publish, calls
--   publish: PUBLISH, or SPUBLISH where the channel has a slot
-- returns, for each request: code, ms, text
--   1, lease taken away in ms, ''   the vote was the hold's and is free now
--   0, lease left in ms, holder     marked; the hold had no vote here (-2 ms and '': nobody has)
--   -1, 0, message                  this request failed, alone
-- atomic, because a renewal between the mark and the deletion would leave one without the other.
local function force_release(lock, revoked, queue, alive, hold, marker_ms, channel, publish,
                             calls)
  -- First, and also where there is no mark yet: after a first write a server that is full refuses
  -- no other.
  local ms = math.max(tonumber(marker_ms), redis.call('PTTL', revoked))
  redis.call('PEXPIRE', revoked, ms)
  redis.call('HSET', revoked, hold, 1)
  expire(revoked, ms)
  ms = redis.call('PTTL', lock)
  if redis.call('HEXISTS', lock, hold) == 0 then
    return 0, ms, redis.call('HKEYS', lock)[1] or ''
  end
  redis.call('DEL', lock)
  sweep(queue, alive)
  leave(place_of(hold) or '', queue, alive)
  tell(queue, nil, channel, calls, publish)
  return 1, ms, ''
end

return each(4, 5, force_release)
