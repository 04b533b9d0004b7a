-- redisson/queue: says whether somebody waits for an RFairLock of Redisson; changes nothing.
-- KEYS, for each request: waiting, timeouts
-- ARGV, for all requests: none
-- ARGV, for each request: none
-- returns, for each request: code, ms, id
--   1, 0, ''         somebody waits, or did and left this behind
--   0, 0, ''         nobody
--   -1, 0, message   this request failed, alone
-- atomic, because those who wait are in both keys or in neither.
local function queue(key)
  local waiting, timeouts = unpack(KEYS, key + 1, key + 2)
  return math.min(redis.call('EXISTS', waiting, timeouts), 1), 0, ''
end

return each(2, 0, 0, 3, queue)
