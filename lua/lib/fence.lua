-- fence: the number of the latest hold that had this vote, which grows from one to the next. '' for
-- the floor, or for the token: the hold asks for none.
local function fence_of(fence)
  return tonumber(redis.call('GET', fence) or 0)
end

-- Beyond this, numbers are not told apart any more.
local function store(fence, token, keep_ms)
  if token >= 2 ^ 53 then
    error('the fencing tokens of this lock are used up', 0)
  end
  local text = string.format('%.0f', token)
  redis.call('SET', fence, text, 'PX', keep_ms)
  return text
end

-- The number of a hold that is given the vote now, or that has it already.
local function number(fence, floor, keep_ms, has)
  if floor == '' then
    return ''
  end
  local latest = fence_of(fence)
  if has and latest > 0 then
    return string.format('%.0f', latest)
  end
  return store(fence, math.max(latest + 1, tonumber(floor)), keep_ms)
end

-- The hold that has the vote goes by this number.
local function raise(fence, token, keep_ms)
  if token ~= '' and fence_of(fence) < tonumber(token) then
    store(fence, tonumber(token), keep_ms)
  end
end
