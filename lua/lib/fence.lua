-- fence: the number of the latest hold that had this vote, which grows from one to the next. '' for
-- the floor, or for the token: the hold asks for none. '' for `keep_ms`: the number stays for ever.
local function store(fence, token, keep_ms)
  local text = string.format('%.0f', token)
  if keep_ms == '' then
    redis.call('SET', fence, text)
  else
    redis.call('SET', fence, text, 'PX', keep_ms)
  end
  return text
end

-- A hold has so many numbers, of which this is the last: tasks of its client may have it one after
-- the other, each with a number of its own. As `Token::BLOCK`.
local BLOCK = 64

local DAY_MS = 24 * 3600 * 1000

-- Whole numbers without leading zeros compare as their texts do, and that costs less than reading
-- them.
local function exceeds(number, other)
  return #number > #other or #number == #other and number > other
end

-- A floor no further ahead of this voter's clock than half of the time that a number is remembered:
-- when it has been forgotten, clocks that are right have passed it.
local most
local function bounded(floor, keep_ms)
  if not most then
    local ms = (tonumber(keep_ms) or DAY_MS) / 2
    most = string.format('%.0f', (now_ms() + ms) * 1000)
  end
  return exceeds(floor, most) and most or floor
end

-- The last number of the block after the latest, which is stored.
local function number_after(fence, latest, keep_ms)
  latest = tonumber(latest)
  if not (latest + BLOCK < 2 ^ 53) then
    -- From there on numbers are not told apart any more. No voter counts so far: somebody else
    -- wrote that. What is stored now is the floor, so that this is not said for ever.
    error('the fencing tokens of this lock are used up: they begin anew', 0)
  end
  return store(fence, latest + BLOCK, keep_ms)
end

-- The number of a hold that is given the vote now.
local function number(fence, floor, keep_ms)
  if floor == '' then
    return ''
  end
  floor = bounded(floor, keep_ms)
  -- One command, as the floor is nearly always above the latest.
  local latest
  if keep_ms == '' then
    latest = redis.call('SET', fence, floor, 'GET')
  else
    latest = redis.call('SET', fence, floor, 'PX', keep_ms, 'GET')
  end
  if not latest or floor - (tonumber(latest) or 0) >= BLOCK then
    return floor
  end
  return number_after(fence, latest, keep_ms)
end

-- The number of a hold that has the vote already.
local function number_again(fence, floor, keep_ms)
  local latest = floor ~= '' and redis.call('GET', fence)
  return latest or number(fence, floor, keep_ms)
end

-- The hold that has the vote goes by this number, which is not forgotten meanwhile. What is none,
-- or has another type, no lock has written: a hold does not end by it.
local function raise(fence, token, keep_ms)
  if token == '' then
    return
  end
  local latest = redis.pcall('GET', fence)
  if type(latest) == 'table' and not string.find(latest.err, 'WRONGTYPE', 1, true) then
    error(latest.err, 0)
  end
  if latest ~= token and (tonumber(latest) or 0) < tonumber(token) then
    store(fence, tonumber(token), keep_ms)
  elseif keep_ms ~= '' then
    redis.call('PEXPIRE', fence, keep_ms)
  end
end
