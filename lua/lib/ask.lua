-- ask: asks for the vote, from a place in the queue or from none. `count` is what the record has of
-- the hold.
local function ask(
  lock, queue, alive, fence, hold, floor, ticket, count, lease_ms, keep_ms, wait_ms
)
  if place_of(hold) then
    return bid(lock, queue, alive, fence, hold, floor, ticket, count, lease_ms, keep_ms, wait_ms)
  end
  local code, ms, id, token =
    take(lock, queue, alive, fence, hold, floor, count, lease_ms, keep_ms)
  return code, ms, id, token, 0
end
