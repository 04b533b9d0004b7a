-- rw/release: sets a write's count; at 0 gives the vote back, leaves the queue, and calls those
-- who are next.
-- KEYS, for each request: writer, readers, queue, alive, writers
-- ARGV, for all requests: calls
-- ARGV, for each request: hold, count, place
--   place '': stays in the queue
-- returns, for each request: code, ms, id
--   1, lease left in ms, ''       done (0 ms: given back)
--   0, lease left in ms, writer   this hold has no vote here (-2 ms and '': nobody writes)
--   -1, 0, message                this request failed, alone
-- atomic, because the vote may have passed to another hold since the caller looked.
local function recount_any(writer, readers, hold, count)
  sweep_readers(readers)
  local ms = recount(writer, hold, count)
  if ms then
    return 1, ms, ''
  end
  local ends = redis.call('ZSCORE', readers, hold)
  if ends then
    return 1, tonumber(ends) - now_ms(), ''
  end
  return 0, redis.call('PTTL', writer), holder(writer) or ''
end

local function release(key, args, arg)
  local writer, readers, queue, alive, writers = unpack(KEYS, key + 1, key + 5)
  local hold, count, place = unpack(args, arg + 1, arg + 3)
  if count ~= '0' then
    return recount_any(writer, readers, hold, count)
  end
  local waiting = sweep(queue, alive, writers)
  if waiting then
    -- Nobody else asks here whether the others that read still do.
    sweep_readers(readers)
  end
  local gone = take_back(writer, readers, hold)
  local waited = waiting and place ~= '' and redis.call('ZSCORE', queue, place)
  if waiting and (gone or waited) then
    local wrote = gone == 'write' or waited and redis.call('ZSCORE', writers, place)
    leave(place, queue, alive, writers)
    call_next(writer, readers, queue, writers, wrote and 'write' or 'read', place_of(hold))
  end
  if gone then
    return 1, 0, ''
  end
  return 0, redis.call('PTTL', writer), holder(writer) or ''
end

return each(5, 1, 3, 3, release)
