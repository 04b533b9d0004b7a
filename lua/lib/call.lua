-- call: wakes who waits in a queue, on the channel of the client. What the names of these channels
-- begin with is the first of ARGV, for all requests.
local calls = ARGV[1]

local function call(place)
  redis.call('PUBLISH', calls .. string.match(place, '^[^:]*'), place)
end

-- The vote is free: calls the first who waits, unless that is `place`, which knows. Says whether
-- anybody waits.
local function call_first(queue, place)
  local head = first(queue)
  if head and head ~= place then
    call(head)
  end
  return head
end
