-- mutex/force_release: ends one named hold, whoever asks, and marks it: no renewal brings it back.
-- KEYS, for each request: lock, revoked, queue, alive
-- ARGV, for all requests: calls, aloud, publish
-- ARGV, for each request: hold, marker_ms, channel
--   aloud, channel: as in mutex/release
-- returns, for each request: code, ms, id
--   1, lease taken away in ms, ''   the vote was the hold's and is free now
--   0, lease left in ms, holder     marked; the hold had no vote here (-2 ms and '': nobody has)
--   -1, 0, message                  this request failed, alone
-- atomic, because a renewal between the mark and the deletion would leave one without the other.
local function force_release(key, args, arg)
  local lock, revoked, queue, alive = unpack(KEYS, key + 1, key + 4)
  local hold, marker_ms, channel = unpack(args, arg + 1, arg + 3)
  mark_ended(revoked, hold, marker_ms)
  local ms = redis.call('PTTL', lock)
  if redis.call('HDEL', lock, hold) == 0 then
    return 0, ms, holder(lock) or ''
  end
  -- Only in a record of another program it shared the vote, with its other fields.
  redis.call('DEL', lock)
  local waiting = sweep(queue, alive)
  leave(place_of(hold) or '', queue, alive)
  tell(channel, waiting and call_first(queue, nil, not is_sharded and alive))
  return 1, ms, ''
end

return each(4, 3, 3, 3, force_release)
