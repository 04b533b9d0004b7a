-- redisson/rw_inspect: tells who has the vote in an RReadWriteLock of Redisson, and the latest
-- token of ours; changes nothing.
-- KEYS, for each request: lock, stem, fence
-- ARGV, for all requests: none
-- ARGV, for each request: none
--   stem: what the keys of readers begin with
-- returns, for each request: code, ms, id, count, more
--   1, lease left in ms, writer, count, more   somebody writes (-1 ms: the record has no expiry)
--   0, -2, '', 0, more                         nobody does
--   -1, 0, message, '', ''                     this request failed, alone
--   more: as that of rw/inspect; nobody waits in a queue. A record without a mode is that of
--   another kind of lock: who has it counts as a writer
-- atomic, because holders and leases must belong together.
local function rw_inspect(key)
  local lock, stem, fence = unpack(KEYS, key + 1, key + 3)
  local mode, holds, counts = redis.call('HGET', lock, 'mode'), holds_of(lock)
  local by, reading = nil, {}
  for _, hold in ipairs(holds) do
    if not mode or is_write(hold) then
      by = hold
    else
      local ms = left_of(stem, hold, counts[hold])
      if ms >= 0 then
        list(reading, hold, 0, ms)
      end
    end
  end
  local more = { reading, {}, {}, latest(fence) }
  if not by then
    return 0, -2, '', 0, more
  end
  return 1, redis.call('PTTL', lock), by, tonumber(counts[by]) or 0, more
end

return each(3, 0, 0, 5, rw_inspect)
