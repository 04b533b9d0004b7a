-- voter/tenure: since when a server that was promoted is known to clients as that.
-- KEYS, for each request: mark
-- ARGV, for each request: replid, keep_ms
--   replid: the replication id, another one with each promotion; keep_ms: how long the mark is kept
-- returns, for each request: code, ms, text
--   1, this voter's clock, since  both in ms since 1970, equal where nobody has met it before
--   -1, 0, message                this request failed, alone
-- atomic, because of two clients that find no mark the later one would set the time back.
local function tenure(mark, replid, keep_ms)
  local now = now_ms()
  local id, since = string.match(redis.call('GET', mark) or '', '^(%S+) (%d+)$')
  -- Another one's mark came from the primary before it. One of the future is of a clock set back.
  since = id == replid and tonumber(since) <= now and since or string.format('%.0f', now)
  redis.call('SET', mark, replid .. ' ' .. since, 'PX', keep_ms)
  return 1, now, since
end

return each(1, 2, tenure)
