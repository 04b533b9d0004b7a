-- tell: the vote is free. How that is published is the third of ARGV, for all requests. With '1' as
-- the second, programs listen that know nothing of the queue: where somebody was called who waits in
-- order they are told 00, which they read as 0, and our own clients pass it over.
local aloud, publish = unpack(ARGV, 2, 3)
local is_sharded = publish == 'SPUBLISH'

local function tell(channel, called)
  if channel ~= '' then
    announce(publish, channel, called and aloud == '1' and '00' or '0')
  end
end
