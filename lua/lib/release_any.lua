-- release_any: all that a release can ask for. It sets the count of a hold that excludes all
-- others. Where the hold was to give its vote back and that is done (`had` says whether it had
-- one), its place leaves the queue, and the first there is called.
local function release_any(lock, queue, alive, hold, count, had, place, channel)
  if count ~= '0' then
    local ms = recount(lock, hold, count)
    if ms then
      return 1, ms, ''
    end
    return 0, redis.call('PTTL', lock), holder(lock) or ''
  end
  local waiting = sweep(queue, alive)
  local was_first = waiting and not had and place ~= '' and first(queue) == place
  if waiting and place ~= '' then
    leave(place, queue, alive)
  end
  if had then
    tell(channel, waiting and call_first(queue, place_of(hold), not is_sharded and alive))
    return 1, 0, ''
  end
  local by = holder(lock)
  if was_first and not by then
    tell(channel, call_first(queue, place, not is_sharded and alive))
  end
  return 0, redis.call('PTTL', lock), by or ''
end
