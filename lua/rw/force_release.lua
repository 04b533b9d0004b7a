-- rw/force_release: ends one named hold, whoever asks, and marks it: no renewal brings it back.
-- KEYS, for each request: writer, readers, revoked, queue, alive, writers
-- ARGV, for all requests: calls
-- ARGV, for each request: hold, marker_ms
-- returns, for each request: code, ms, id
--   1, lease taken away in ms, ''   the hold had the vote, and has it no more
--   0, lease left in ms, writer     marked; the hold had no vote here (-2 ms and '': nobody writes)
--   -1, 0, message                  this request failed, alone
-- atomic, because a renewal between the mark and the deletion would leave one without the other.
local function force_release(key, args, arg)
  local writer, readers, revoked, queue, alive, writers = unpack(KEYS, key + 1, key + 6)
  local hold, marker_ms = unpack(args, arg + 1, arg + 2)
  mark_ended(revoked, hold, marker_ms)
  sweep_readers(readers)
  sweep(queue, alive, writers)
  local gone, ms = take_back(writer, readers, hold)
  local place = place_of(hold) or ''
  local wrote = gone == 'write' or redis.call('ZSCORE', writers, place)
  leave(place, queue, alive, writers)
  call_next(writer, readers, queue, writers, wrote and 'write' or 'read')
  if gone then
    return 1, ms, ''
  end
  return 0, redis.call('PTTL', writer), holder(writer) or ''
end

return each(6, 1, 2, 3, force_release)
