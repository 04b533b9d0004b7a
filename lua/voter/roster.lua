-- voter/roster: who the clients of this voter believe its voters to be, and whether one agrees.
-- KEYS, for each request: roster
-- ARGV, for all requests: keep_ms, late_ms
-- ARGV, for each request: mine, who, heard
--   mine: what the client believes: `<step> <voters> <old voters> <longest lease in ms>`; who: its
--   id and its name, or nothing from one that only looks; heard: what its other voters have of such
--   beliefs, a line each: `<belief> <age in ms> <who>`; keep_ms: how long a belief is kept at
--   least; late_ms: how much later than it was here a client may be told of
-- returns, for each request: code, ms, id, beliefs
--   1, 0, '', beliefs    nobody was here of late who believes otherwise; who looks is not kept
--   2, 0, '', beliefs    somebody was, and mine is not kept
--   -1, 0, message, ''   this request failed, alone
--   beliefs: a line each, the latest first: `<0, or 1 if it clashes> <belief> <age> <who>`
-- atomic, because of two clients that find nothing and would both be kept.

local keep_ms, late_ms = unpack(ARGV, 1, 2)

-- No fleet has as many at once; whoever writes more is wrong.
local MOST = 16

-- Adds the beliefs of a text, unless they are known to be later. `when`: of the number of a line.
local function add(seen, text, when)
  for belief, number, who in string.gmatch(text, '(%d+ %d+ %d+ %d+) (%d+) ([^\n]*)') do
    local last = when(tonumber(number))
    if not seen[belief] or seen[belief].last < last then
      seen[belief] = { belief = belief, last = last, who = who }
    end
  end
end

-- Whether two beliefs clash, and for how long that matters after somebody was here.
local function clash(mine, other)
  local step, _, _, longest = string.match(mine, '^(%d+) (%d+) (%d+) (%d+)$')
  local its_step, _, _, its_longest = string.match(other, '^(%d+) (%d+) (%d+) (%d+)$')
  local apart = math.abs(step - its_step)
  local clashes = longest ~= its_longest or apart > 1 or apart == 0 and mine ~= other
  return clashes, math.max(longest, its_longest)
end

local function roster(key, args, arg)
  local roster = KEYS[key + 1]
  local mine, who, heard = unpack(args, arg + 1, arg + 3)
  local now, seen, beliefs, agreed = now_ms(), {}, {}, true
  -- A clock that was set back: seen just now, and no later.
  add(seen, redis.call('GET', roster) or '', function(last) return math.min(last, now) end)
  add(seen, heard, function(age) return now - age end)
  for _, it in pairs(seen) do
    local clashes, longest = clash(mine, it.belief)
    it.clashes = clashes and now - it.last < longest + late_ms
    agreed = agreed and not it.clashes
    if now - it.last <= math.max(keep_ms, longest + late_ms) then
      beliefs[#beliefs + 1] = it
    end
  end
  if agreed and who ~= '' then
    if seen[mine] then
      seen[mine].last, seen[mine].who = now, who
    else
      beliefs[#beliefs + 1] = { belief = mine, last = now, who = who }
    end
  end
  table.sort(beliefs, function(one, other)
    return one.last > other.last or one.last == other.last and one.belief < other.belief
  end)
  local kept, told = {}, {}
  for at = 1, math.min(#beliefs, MOST) do
    local it = beliefs[at]
    kept[at] = string.format('%s %.0f %s', it.belief, it.last, it.who)
    local mark = it.clashes and 1 or 0
    told[at] = string.format('%d %s %.0f %s', mark, it.belief, now - it.last, it.who)
  end
  if agreed and who ~= '' then
    redis.call('SET', roster, table.concat(kept, '\n'), 'PX', keep_ms)
  end
  return agreed and 1 or 2, 0, '', table.concat(told, '\n')
end

return each(1, 2, 3, 4, roster)
