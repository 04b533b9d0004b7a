-- slots: who has which permits of a semaphore. A permit is a slot, a number from 0 on, which a
-- voter gives to one hold. `slots` has the slot of each member, `ends` until when it counts, by
-- this voter's clock; both expire with the last. A hold of several slots is several members: the
-- hold, `<hold>+1`, `<hold>+2` and so on.
local function hold_of(member)
  return string.match(member, '^(.+)%+%d+$') or member
end

local function member_of(hold, at)
  return at == 0 and hold or hold .. '+' .. at
end

local function take_out(slots, ends, members)
  if #members > 0 then
    redis.call('ZREM', slots, unpack(members))
    redis.call('ZREM', ends, unpack(members))
  end
end

-- How many slots are taken. Takes out some whose leases have ended: no more than the caller asks
-- for, so that no call takes long. Where somebody deleted one of the two keys, it is unknown who
-- has what, as if both were gone.
local function sweep_slots(slots, ends, most)
  local taken = redis.call('ZCOUNT', ends, now_ms(), '+inf')
  if taken == redis.call('ZCARD', slots) then
    return taken
  end
  local soonest, ended = redis.call('ZRANGE', ends, 0, most - 1, 'WITHSCORES'), {}
  for at = 1, #soonest, 2 do
    if tonumber(soonest[at + 1]) < now_ms() then
      ended[#ended + 1] = soonest[at]
    end
  end
  take_out(slots, ends, ended)
  if redis.call('ZCARD', slots) ~= redis.call('ZCARD', ends) then
    redis.call('DEL', slots, ends)
    return 0
  end
  return taken
end

-- The slots of a hold that asks for so many, in the order in which it has them; none where its
-- lease has ended.
local function slots_of(slots, ends, hold, wanted)
  local own, until_ms = {}, tonumber(redis.call('ZSCORE', ends, hold))
  if not until_ms or until_ms < now_ms() then
    return own
  end
  for at = 0, wanted - 1 do
    local slot = redis.call('ZSCORE', slots, member_of(hold, at))
    if not slot then
      break
    end
    own[at + 1] = tonumber(slot)
  end
  return own
end

-- Slots as a text: ranges with both ends, `7-9,0-0`; and back.
local function text_of(list)
  local ranges, from = {}, list[1]
  for at, slot in ipairs(list) do
    if list[at + 1] ~= slot + 1 then
      ranges[#ranges + 1] = from .. '-' .. slot
      from = list[at + 1]
    end
  end
  return table.concat(ranges, ',')
end

local function read_slots(text)
  local list = {}
  for from, to in string.gmatch(text, '(%d+)%-(%d+)') do
    for slot = tonumber(from), tonumber(to) do
      list[#list + 1] = slot
    end
  end
  return list
end

-- The keys end with the last of their members, after one that ended then has changed or gone.
local function end_with_last(slots, ends, former)
  local last = redis.call('ZRANGE', ends, -1, -1, 'WITHSCORES')[2]
  if last and tonumber(last) < former then
    last = math.max(last, now_ms() + 1)
    redis.call('PEXPIREAT', slots, last)
    redis.call('PEXPIREAT', ends, last)
  end
end

-- Takes from a hold what it has: how much was left of its lease, nil where it had nothing.
local function take_slots(slots, ends, hold)
  local until_ms = tonumber(redis.call('ZSCORE', ends, hold))
  if not until_ms then
    return nil
  end
  local at, some, taken = 0, 2, 0
  repeat
    local members = {}
    for number = 1, some do
      members[number] = member_of(hold, at + number - 1)
    end
    local gone = redis.call('ZREM', slots, unpack(members))
    taken = taken + gone
    gone = gone + redis.call('ZREM', ends, unpack(members))
    -- It has no more where neither key had the last of these.
    local is_all = gone <= 2 * (some - 1)
    at, some = at + some, math.min(8 * some, 256)
  until is_all
  end_with_last(slots, ends, until_ms)
  if taken == 0 or until_ms < now_ms() then
    return nil
  end
  return until_ms - now_ms()
end

-- Lets the members of a hold count for so long at least, and never for less than they do. Begins
-- with PEXPIREAT: a server that is full refuses what could take memory only before a first write.
local function keep_slots(slots, ends, hold, count, lease_ms)
  local former = tonumber(redis.call('ZSCORE', ends, hold)) or 0
  local until_ms = math.max(now_ms() + lease_ms, former)
  redis.call('PEXPIREAT', slots, math.max(until_ms, now_ms() + redis.call('PTTL', slots)))
  redis.call('PEXPIREAT', ends, math.max(until_ms, now_ms() + redis.call('PTTL', ends)))
  local words = {}
  for at = 0, count - 1 do
    words[2 * at + 1], words[2 * at + 2] = until_ms, member_of(hold, at)
  end
  redis.call('ZADD', ends, unpack(words))
end

-- Gives slots that nobody else has to a hold that has none.
local function give_slots(slots, ends, hold, list, lease_ms)
  local until_ms, words, deadlines = now_ms() + lease_ms, {}, {}
  for at, slot in ipairs(list) do
    local member = member_of(hold, at - 1)
    words[2 * at - 1], words[2 * at] = slot, member
    deadlines[2 * at - 1], deadlines[2 * at] = until_ms, member
  end
  redis.call('ZADD', slots, unpack(words))
  redis.call('ZADD', ends, unpack(deadlines))
  if redis.call('PTTL', slots) < lease_ms then
    for _, key in ipairs({ slots, ends }) do
      local done = redis.pcall('PEXPIREAT', key, until_ms)
      if type(done) == 'table' and done.err then
        take_slots(slots, ends, hold)
        error(done.err, 0)
      end
    end
  end
end

-- Of how many permits a semaphore is: of the fewest that somebody who holds or waits has asked with
-- of late; and until when that is known to be asked for. `permits` has both numbers, for as long as
-- a lease of who asked last, or a quarter longer: so it need not be written each time.
local function fewest(permits, asked)
  local known, until_ms = string.match(redis.call('GET', permits) or '', '^(%d+) (%d+)$')
  known = tonumber(known) or asked
  return math.min(asked, known), known <= asked and tonumber(until_ms) or 0
end

local function remember(permits, asked, limit, known_ms, lease_ms)
  if asked == limit and known_ms < now_ms() + lease_ms then
    local ms = lease_ms + math.floor(lease_ms / 4)
    local text = string.format('%.0f %.0f', asked, now_ms() + ms)
    redis.call('SET', permits, text, 'PX', string.format('%.0f', ms))
  end
end
