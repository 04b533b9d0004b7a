-- election/look: tells who has the vote, and what it says of itself; changes nothing.
-- KEYS, for each request: lock, fence
-- ARGV, for all requests: none
-- ARGV, for each request: none
-- returns, for each request: code, ms, id, number, value
--   1, lease left in ms, holder, number, value   held (-1 ms: the record has no expiry)
--   0, -2, '', '', ''                            free
--   -1, 0, message, '', ''                       this request failed, alone
--   number: that of the latest hold that had this vote, '' where none is known
-- atomic, because holder, number and value must belong together.
local function look(key)
  local lock, fence = unpack(KEYS, key + 1, key + 2)
  local by, value = holder(lock)
  if not by then
    return 0, -2, '', '', ''
  end
  return 1, redis.call('PTTL', lock), by, latest(fence), value
end

return each(2, 0, 0, 5, look)
