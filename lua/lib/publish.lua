-- publish: tells those who listen to a channel. `publish` is PUBLISH or SPUBLISH. Where the server
-- does not know the command, or does not allow it, nobody can listen that way either.
local function announce(publish, channel, message)
  local told = redis.pcall(publish, channel, message)
  if type(told) == 'table' and told.err then
    redis.call('PUBLISH', channel, message)
  end
end
