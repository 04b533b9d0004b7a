-- mutex/inspect: tells who has the vote and who waits for it; changes nothing.
-- KEYS, for each request: lock, queue, alive
-- ARGV, for each request: none
-- returns, for each request: code, ms, text
--   count, lease left in ms, waiting .. holder   held (-1 ms: the record has no expiry)
--   0, -2, waiting                               free
--   -1, 0, message                               this request failed, alone
--   waiting: a line with the number of places, and a line `ticket ms place` for each, in order
-- atomic, because holder, count, lease and queue must belong together.
local function inspect(lock, queue, alive)
  local by = redis.call('HKEYS', lock)[1]
  local holder, now, lines = by and place_of(by), now_ms(), {}
  local places = redis.call('ZRANGE', queue, 0, -1, 'WITHSCORES')
  for at = 1, #places, 2 do
    local place, ticket = places[at], places[at + 1]
    local ms = tonumber(redis.call('ZSCORE', alive, place) or 0) - now
    if ms > 0 and place ~= holder then
      lines[#lines + 1] = table.concat({ ticket, string.format('%.0f', ms), place }, ' ')
    end
  end
  local waiting = #lines .. '\n' .. table.concat(lines, '\n') .. (#lines > 0 and '\n' or '')
  if not by then
    return 0, -2, waiting
  end
  return tonumber(redis.call('HGET', lock, by)), redis.call('PTTL', lock), waiting .. by
end

return each(3, 0, inspect)
