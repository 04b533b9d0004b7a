-- voter/name: tells the name of a client; changes nothing.
-- KEYS, for each request: client
-- ARGV, for all requests: none
-- ARGV, for each request: none
-- returns, for each request: code, ms, id
--   1, 0, name       the client has said it, not long ago
--   0, 0, ''         nobody has said it
--   -1, 0, message   this request failed, alone
-- atomic, because it is one command: as a script it shares a call with others.
local function name(key)
  local client = KEYS[key + 1]
  local found = redis.call('GET', client)
  return found and 1 or 0, 0, found or ''
end

return each(1, 0, 0, 3, name)
