-- tell: the vote is free, and nobody waits in order. How that is published, PUBLISH or SPUBLISH, is
-- the second of ARGV, for all requests. Where the server does not know the command, or does not
-- allow it, nobody can listen that way either.
local publish = ARGV[2]
local is_sharded = publish == 'SPUBLISH'

local function tell(channel)
  if channel ~= '' then
    local told = redis.pcall(publish, channel, '0')
    if type(told) == 'table' and told.err then
      redis.call('PUBLISH', channel, '0')
    end
  end
end
