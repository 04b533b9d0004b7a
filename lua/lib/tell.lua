-- tell: the vote is free. How that is published is the third of ARGV, for all requests. With '1' as
-- the second, it is also where somebody was called who waits in order: programs that know nothing
-- of the queue read 00 as 0, and our own clients pass it over. With '2' all are told alike. Says
-- how many heard it, '' for one or none.
local aloud, publish = unpack(ARGV, 2, 3)
local is_sharded = publish == 'SPUBLISH'

local function tell(channel, called)
  if channel ~= '' and not (called and aloud == '') then
    local heard = announce(publish, channel, called and aloud == '1' and '00' or '0')
    if heard > 1 then
      return tostring(heard)
    end
  end
  return ''
end
