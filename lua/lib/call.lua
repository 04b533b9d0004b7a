-- call: wakes who waits in a queue, on the channel of the client. What the names of these channels
-- begin with is the first of ARGV, for all requests.
local calls = ARGV[1]

-- Returns how many hear it, of the clients of this server.
local function call(place)
  return redis.call('PUBLISH', calls .. string.match(place, '^[^:]*'), place)
end

-- The vote is free: calls the first who waits, unless that is `place`, which knows. Says whether
-- anybody waits. With `alive`, a place that is owed no turn in order is taken out if its client
-- does not hear the call: the client has gone, or it comes back by itself. Not for servers of a
-- cluster: a client may listen at another one.
local function call_first(queue, place, alive)
  local head = first(queue)
  while head and head ~= place and call(head) == 0 do
    if not (alive and string.find(head, ':~', 1, true)) then
      break
    end
    leave(head, queue, alive)
    head = first(queue)
  end
  return head
end
