-- election/acquire: asks for the vote for a candidate, as mutex/acquire does. Its value stands in
-- the record, for as long as the vote.
-- KEYS, for each request: lock, queue, alive, fence
-- ARGV, for all requests: calls, lease_ms, keep_ms, wait_ms, publish
-- ARGV, for each request: hold, floor, ticket, value, news
--   floor, keep_ms, ticket: as in mutex/acquire; value: its version, a blank, and what the leader
--   says of itself; news: the channel of observers, who get a message when the vote is given
-- returns, for each request: code, ms, id, token, ticket
--   as mutex/acquire
-- atomic, because two waiters that look before either is entered would both be the last.
local lease_ms, keep_ms, wait_ms, publish = unpack(ARGV, 2, 5)

local function acquire(key, args, arg)
  local lock, queue, alive, fence = unpack(KEYS, key + 1, key + 4)
  local hold, floor, ticket, value, news = unpack(args, arg + 1, arg + 5)
  local had = redis.call('HEXISTS', lock, hold) == 1
  local code, ms, id, token, given =
    ask(lock, queue, alive, fence, hold, floor, ticket, value, lease_ms, keep_ms, wait_ms)
  if code == 1 and not had then
    announce(publish, news, '0')
  end
  return code, ms, id, token, given
end

return each(4, 5, 5, 5, acquire)
