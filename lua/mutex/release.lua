-- mutex/release: sets the hold count; at 0 gives the vote back and tells the channel, if not ''.
-- KEYS, for each request: lock
-- ARGV, for each request: hold, count, channel
-- returns, for each request: code, ms, text
--   1, lease left in ms, ''       done (0 ms: given back)
--   0, lease left in ms, holder   this hold has no vote here (-2 ms and '': nobody has)
--   -1, 0, message                this request failed, alone
-- atomic, because the vote may have passed to another hold since the caller looked.
local function release(lock, hold, count, channel)
  if redis.call('HEXISTS', lock, hold) == 0 then
    return 0, redis.call('PTTL', lock), redis.call('HKEYS', lock)[1] or ''
  end
  if tonumber(count) > 0 then
    redis.call('HSET', lock, hold, count)
    return 1, redis.call('PTTL', lock), ''
  end
  redis.call('DEL', lock)
  if channel ~= '' then
    redis.call('PUBLISH', channel, '0')
  end
  return 1, 0, ''
end

return each(1, 3, release)
