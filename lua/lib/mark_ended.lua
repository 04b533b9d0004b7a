-- mark_ended: marks a hold that is ended by force, for so long at least: no renewal brings it back.
local function mark_ended(revoked, hold, marker_ms)
  -- First, and also where there is no mark yet: after a first write a server that is full refuses
  -- no other.
  local ms = math.max(tonumber(marker_ms), redis.call('PTTL', revoked))
  redis.call('PEXPIRE', revoked, ms)
  redis.call('HSET', revoked, hold, 1)
  expire(revoked, ms)
end
