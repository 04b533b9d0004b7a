-- semaphore/renew: keeps the slots of a hold, or says that it has others or none.
-- KEYS, for each request: slots, ends, revoked, queue, served, alive, permits
-- ARGV, for all requests: calls, lease_ms
-- ARGV, for each request: hold, asked, given, anew
--   asked: of how many permits the semaphore is; given: the slots, as ranges; anew '1': the hold is
--   given these where nobody has one of them
-- returns, for each request: code, ms, id
--   1, this voter's clock, ''     granted; the clock in ms since 1970
--   0, lease left in ms, holder   refused: that hold has one of the slots
--   2, 0, ''                      the hold was ended by force and gets no slot again
--   4, 0, ''                      the hold has not these slots, and they were not given
--   -1, 0, message                this request failed, alone
-- atomic, because a forced release between the check and the grant would be undone by it.
local lease_ms = ARGV[2]
lease_ms = tonumber(lease_ms)

local function is_same(own, list)
  for at, slot in ipairs(list) do
    if own[at] ~= slot then
      return false
    end
  end
  return #own == #list
end

-- Of these slots those that the hold has, and a member of another hold that has one. Takes them
-- from holds whose leases have ended.
local function look(slots, ends, hold, list)
  local kept, ended, other = {}, {}, nil
  for _, slot in ipairs(list) do
    local member = redis.call('ZRANGEBYSCORE', slots, slot, slot)[1]
    if member and hold_of(member) == hold then
      kept[#kept + 1] = slot
    elseif member and (tonumber(redis.call('ZSCORE', ends, member)) or 0) >= now_ms() then
      other = member
    elseif member then
      ended[#ended + 1] = member
    end
  end
  take_out(slots, ends, ended)
  return kept, other
end

local function renew(key, args, arg)
  local slots, ends, revoked, queue, served, alive, permits = unpack(KEYS, key + 1, key + 7)
  local hold, asked, given, anew = unpack(args, arg + 1, arg + 4)
  if redis.call('HEXISTS', revoked, hold) == 1 then
    return 2, 0, ''
  end
  local list = read_slots(given)
  sweep_slots(slots, ends, 1)
  asked = tonumber(asked)
  local limit, known_ms = fewest(permits, asked)
  local own = slots_of(slots, ends, hold, #list)
  if is_same(own, list) then
    keep_slots(slots, ends, hold, #list, lease_ms)
    remember(permits, asked, limit, known_ms, lease_ms)
    return 1, now_ms(), ''
  end
  local kept, other = look(slots, ends, hold, list)
  if not other and anew == '' then
    return 4, 0, ''
  end
  local left = take_slots(slots, ends, hold)
  if not other then
    give_slots(slots, ends, hold, list, lease_ms)
    remember(permits, asked, limit, known_ms, lease_ms)
  elseif left and #kept > 0 then
    give_slots(slots, ends, hold, kept, left)
  end
  if left and #kept < #own and sweep_places(queue, served, alive) then
    -- What it had elsewhere is free.
    call_first(queue)
  end
  if other then
    return 0, tonumber(redis.call('ZSCORE', ends, other)) - now_ms(), hold_of(other)
  end
  return 1, now_ms(), ''
end

return each(7, 2, 4, 3, renew)
