-- mutex/release: sets the hold count; at 0 gives the vote back, leaves the queue, and calls the
-- first in it.
-- KEYS, for each request: lock, queue, alive
-- ARGV, for all requests: calls, aloud, publish
-- ARGV, for each request: hold, count, place, channel
--   aloud '1': programs listen that do not know of the queue
--   place: the one to take out of the queue, '' for none
--   channel: where such programs listen, or observers of an election; '' for none
-- returns, for each request: code, ms, id
--   1, lease left in ms, ''       done (0 ms: given back)
--   0, lease left in ms, holder   this hold has no vote here (-2 ms and '': nobody has)
--   -1, 0, message                this request failed, alone
-- atomic, because the vote may have passed to another hold since the caller looked.
local publish = ARGV[3]
-- Few requests need it: `rest` makes it.
local release_any

local function release(key, args, arg)
  local lock, queue, alive = unpack(KEYS, key + 1, key + 3)
  local hold, count, place, channel = unpack(args, arg + 1, arg + 4)
  local had = count == '0' and redis.call('HDEL', lock, hold) == 1
  if had and redis.call('ZCARD', queue) == 0 then
    -- The usual case: nobody waits.
    if channel ~= '' then
      announce(publish, channel, '0')
    end
    return 1, 0, ''
  end
  release_any = release_any or rest()
  return release_any(lock, queue, alive, hold, count, had, place, channel)
end

return each(3, 3, 4, 3, release)
