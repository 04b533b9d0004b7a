-- election/renew: as mutex/renew, with the value of the leader in place of a count: it is stored
-- where the voter knows none of its version or a later one.
-- KEYS, for each request: lock, revoked, fence
-- ARGV, for all requests: lease_ms, keep_ms, publish
-- ARGV, for each request: hold, token, value, news, anew
--   value: its version, a blank, and what the leader says of itself; news: the channel of
--   observers, who get a message when the vote is given or the value changes; anew: as mutex/renew
-- returns, for each request: code, ms, id
--   as mutex/renew
-- atomic, because a late renewal that looks at the version before a later one is stored would
-- write over it.
local lease_ms, keep_ms, publish = unpack(ARGV, 1, 3)

local function version(value)
  return tonumber(string.match(value, '^%d+')) or 0
end

local function renew(key, args, arg)
  local lock, revoked, fence = unpack(KEYS, key + 1, key + 3)
  local hold, token, value, news, anew = unpack(args, arg + 1, arg + 5)
  if redis.call('HEXISTS', revoked, hold) == 1 then
    return 2, 0, ''
  end
  local by, stands = holder(lock)
  if by and by ~= hold then
    return 0, redis.call('PTTL', lock), by
  end
  if by and version(stands) >= version(value) then
    value = stands
  end
  local code, ms, id =
    renew_only(lock, fence, lease_ms, keep_ms, hold, value, token, by, stands, anew)
  if code == 1 and value ~= stands then
    announce(publish, news, '0')
  end
  return code, ms, id
end

return each(3, 3, 5, 3, renew)
