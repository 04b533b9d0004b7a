-- publish: tells those who listen to a channel, and says how many heard it. `publish` is PUBLISH or
-- SPUBLISH. Where the server does not know the command, or does not allow it, nobody can listen
-- that way either.
local function announce(publish, channel, message)
  local heard = redis.pcall(publish, channel, message)
  if type(heard) == 'table' and heard.err then
    return redis.call('PUBLISH', channel, message)
  end
  return heard
end
