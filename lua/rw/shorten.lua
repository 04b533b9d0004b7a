-- rw/shorten: lets the lease of a hold that reads end sooner, and its place with it; never later.
-- KEYS, for each request: readers, alive
-- ARGV, for all requests: none
-- ARGV, for each request: hold, lease_ms
-- returns, for each request: code, ms, id
--   1, lease left in ms, ''   done
--   0, -2, ''                 this hold has no vote here
--   -1, 0, message            this request failed, alone
-- atomic, because another reader may come between the new end and that of the key.
local function shorten(key, args, arg)
  local readers, alive = unpack(KEYS, key + 1, key + 2)
  local hold, lease_ms = unpack(args, arg + 1, arg + 2)
  local former = redis.call('ZSCORE', readers, hold)
  former = tonumber(former)
  if not former or former < now_ms() then
    return 0, -2, ''
  end
  local until_ms = math.min(former, now_ms() + tonumber(lease_ms))
  -- First, as a server that is full refuses the other only before a first write.
  redis.call('PEXPIRE', readers, redis.call('PTTL', readers))
  redis.call('ZADD', readers, until_ms, hold)
  local last = redis.call('ZRANGE', readers, -1, -1, 'WITHSCORES')[2]
  redis.call('PEXPIREAT', readers, math.max(last, now_ms() + 1))
  shorten_place(alive, hold, until_ms - now_ms())
  return 1, until_ms - now_ms(), ''
end

return each(2, 0, 2, 3, shorten)
