-- mutex/inspect: tells who has the vote; changes nothing.
-- KEYS, for each request: lock
-- ARGV, for each request: none
-- returns, for each request: code, ms, text
--   count, lease left in ms, holder   held (-1 ms: the record has no expiry)
--   0, -2, ''                         free
--   -1, 0, message                    this request failed, alone
-- atomic, because holder, count and lease must belong together.
local function inspect(lock)
  local by = redis.call('HKEYS', lock)[1]
  if not by then
    return 0, -2, ''
  end
  return tonumber(redis.call('HGET', lock, by)), redis.call('PTTL', lock), by
end

return each(1, 0, inspect)
