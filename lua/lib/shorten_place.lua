-- shorten_place: a holder's place in the queue counts for no longer than its vote.
local function shorten_place(alive, hold, ms)
  local place = place_of(hold)
  local ends = place and redis.call('ZSCORE', alive, place)
  if ends and tonumber(ends) > now_ms() + ms then
    redis.call('ZADD', alive, now_ms() + ms, place)
  end
end
