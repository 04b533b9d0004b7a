-- semaphore/shorten: lets the lease of a hold end sooner; never later.
-- KEYS, for each request: slots, ends
-- ARGV, for all requests: none
-- ARGV, for each request: hold, lease_ms, wanted
--   wanted: how many permits the hold has
-- returns, for each request: code, ms, id
--   1, lease left in ms, ''   done
--   0, -2, ''                 this hold has no slot here
--   -1, 0, message            this request failed, alone
-- atomic, because another hold may come between the new ends and those of the keys.
local function shorten(key, args, arg)
  local slots, ends = unpack(KEYS, key + 1, key + 2)
  local hold, lease_ms, wanted = unpack(args, arg + 1, arg + 3)
  local own, words = slots_of(slots, ends, hold, tonumber(wanted)), {}
  if #own == 0 then
    return 0, -2, ''
  end
  local former = tonumber(redis.call('ZSCORE', ends, hold))
  local until_ms = math.min(former, now_ms() + tonumber(lease_ms))
  for at = 1, #own do
    words[2 * at - 1], words[2 * at] = until_ms, member_of(hold, at - 1)
  end
  -- First, as a server that is full refuses the other only before a first write.
  redis.call('PEXPIRE', ends, redis.call('PTTL', ends))
  redis.call('ZADD', ends, unpack(words))
  end_with_last(slots, ends, former)
  return 1, until_ms - now_ms(), ''
end

return each(2, 0, 3, 3, shorten)
