-- tell: the vote is free. How that is published, PUBLISH or SPUBLISH, is the third of ARGV, for
-- all requests. Where the server does not know the command, or does not allow it, nobody can listen
-- that way either. With '1' as the second, also where somebody was called who waits in order:
-- programs that know nothing of the queue read 00 as 0, and our own clients pass it over. Says how
-- many heard it, '' for one or none.
local aloud, publish = unpack(ARGV, 2, 3)
local is_sharded = publish == 'SPUBLISH'

local function tell(channel, called)
  if channel ~= '' and not (called and aloud == '') then
    local message = called and '00' or '0'
    local heard = redis.pcall(publish, channel, message)
    if type(heard) == 'table' and heard.err then
      heard = redis.call('PUBLISH', channel, message)
    end
    if heard > 1 then
      return tostring(heard)
    end
  end
  return ''
end
