-- tell: says on a lock's channel that the vote is free. The third of ARGV, for all requests, says
-- how it is published. The second is '1' where programs listen that do not know of the queue. If a
-- waiter of the queue was called, the message for them is 00: they read it as 0, and our clients
-- ignore it.
local aloud, publish = unpack(ARGV, 2, 3)
local is_sharded = publish == 'SPUBLISH'

local function tell(channel, called)
  if channel ~= '' then
    announce(publish, channel, called and aloud == '1' and '00' or '0')
  end
end
