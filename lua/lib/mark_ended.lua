-- mark_ended: marks a hold that was ended by force, so that no renewal brings it back. The mark
-- stays for `marker_ms` at least.
local function mark_ended(revoked, hold, marker_ms)
  -- First, and also where there is no mark yet: after a first write a server that is full refuses
  -- no other.
  local ms = math.max(tonumber(marker_ms), redis.call('PTTL', revoked))
  redis.call('PEXPIRE', revoked, ms)
  redis.call('HSET', revoked, hold, 1)
  expire(revoked, ms)
end
