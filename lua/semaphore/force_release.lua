-- semaphore/force_release: ends one named hold, and marks it: no renewal brings it back.
-- KEYS, for each request: slots, ends, revoked, queue, served, alive
-- ARGV, for all requests: calls
-- ARGV, for each request: hold, marker_ms
-- returns, for each request: code, ms, id
--   1, lease taken away in ms, ''   the hold had slots, and has none any more
--   0, -2, ''                       marked; the hold had no slot here
--   -1, 0, message                  this request failed, alone
-- atomic, because a renewal between the mark and the deletion would leave one without the other.
local function force_release(key, args, arg)
  local slots, ends, revoked, queue, served, alive = unpack(KEYS, key + 1, key + 6)
  local hold, marker_ms = unpack(args, arg + 1, arg + 2)
  mark_ended(revoked, hold, marker_ms)
  local had = take_slots(slots, ends, hold)
  if sweep_places(queue, served, alive) then
    leave(place_of(hold) or '', queue, served, alive)
    if had then
      call_first(queue)
    end
  end
  if had then
    return 1, had, ''
  end
  return 0, -2, ''
end

return each(6, 1, 2, 3, force_release)
