-- Sets a value, unless the token is stale.
-- KEYS: 1 the value  2 its fence (in a cluster in the same slot: {invoice:42}:value and
--       {invoice:42}:fence)
-- ARGV: 1 the token  2 the new value
-- Returns 1 where the value was set, 0 where a higher token has been seen; then nothing changed.
-- The fence has no expiry: once it were gone, any late writer would pass. Keep it when you delete
-- the value.
local value_key, fence_key = KEYS[1], KEYS[2]
local token, value = ARGV[1], ARGV[2]

-- Numbers, because as text 9 comes behind 10; a double is exact up to 2^53.
local number = string.find(token, '^%d+$') and tonumber(token) or 0
if number < 1 or number > 9007199254740991 then
    return { err = 'ERR not a fencing token' }
end
if number < tonumber(redis.call('GET', fence_key) or 0) then
    return 0
end
redis.call('SET', fence_key, token)
redis.call('SET', value_key, value)
return 1
