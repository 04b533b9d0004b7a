-- mutex/shorten: lets the lease of a hold end sooner, and its place with it; never later.
-- KEYS, for each request: lock, alive
-- ARGV, for all requests: none
-- ARGV, for each request: hold, lease_ms
-- returns, for each request: code, ms, id
--   1, lease left in ms, ''       done
--   0, lease left in ms, holder   this hold has no vote here (-2 ms and '': nobody has)
--   -1, 0, message                this request failed, alone
-- atomic, because the vote may have passed to another hold since the caller looked.
local function shorten(key, args, arg)
  local lock, alive = unpack(KEYS, key + 1, key + 2)
  local hold, lease_ms = unpack(args, arg + 1, arg + 2)
  local left = redis.call('PTTL', lock)
  if redis.call('HEXISTS', lock, hold) == 0 then
    return 0, left, holder(lock) or ''
  end
  lease_ms = tonumber(lease_ms)
  if left > lease_ms then
    redis.call('PEXPIRE', lock, lease_ms)
    left = lease_ms
    shorten_place(alive, hold, lease_ms)
  end
  return 1, left, ''
end

return each(2, 0, 2, 3, shorten)
