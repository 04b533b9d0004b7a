-- voter/introduce: keeps the name of a client, so that others can say whose a hold is.
-- KEYS, for each request: client
-- ARGV, for all requests: keep_ms
-- ARGV, for each request: name
--   keep_ms: how long the name is kept; clients say it again well before
-- returns, for each request: code, ms, id
--   1, 0, ''         the name is kept
--   -1, 0, message   this request failed, alone
-- atomic, because a name without an expiry would stay for ever.
local keep_ms = ARGV[1]

local function introduce(key, args, arg)
  local client = KEYS[key + 1]
  local name = args[arg + 1]
  redis.call('SET', client, name, 'PX', keep_ms)
  return 1, 0, ''
end

return each(1, 1, 1, 3, introduce)
