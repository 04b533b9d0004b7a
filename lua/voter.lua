-- What is asked of a voter, and not of a lock.

----
-- voter/look: what this voter's data say of themselves, and whether it takes new ones.
-- libraries: time, each
-- KEYS, for each request: fingerprint
-- ARGV, for all requests: keep_ms
-- ARGV, for each request: birth, life, durable, lost
--   birth: a random name for data that have none; life: another one after each start and promotion
--   of the server; durable: '1' where it forgets nothing by a restart, '0' where it may, '' where
--   that is not known; lost: the name of data that are known to lack something, or ''; keep_ms: how
--   long the fingerprint is kept
-- returns, for each request: code, ms, id, refusal, times
--   1, age, birth, refusal, times   these data were met before; age: for how long they are known
--                                   and nothing of them was forgotten, in ms
--   2, 0, birth, refusal, times     nobody has met them before, or the fingerprint is gone with
--   others, or they were of the name that is `lost`: they have a new one
--   -1, 0, message, '', ''          this request failed, alone
--   refusal: why the fingerprint was not written, if it was not; then nothing else is, either;
--   times: what this voter's clock shows, in ms since 1970, and how old the fingerprint was when
--   the first client looked at it in this life
-- atomic, because of two clients that find no fingerprint and would give two names.

local keep_ms = ARGV[1]

-- The clock that shows the age may be set ahead. One look makes it older by so much at most, in ms;
-- clients look every ten seconds.
local MOST = 15000

local function look(key, args, arg)
  local fingerprint = KEYS[key + 1]
  local birth, life, durable, lost = unpack(args, arg + 1, arg + 4)
  local now = now_ms()
  local found, of, known, last, kept, began =
    string.match(redis.call('GET', fingerprint) or '', '^(%S+) (%S+) (%d+) (%d+) ([01]) (%d+)$')
  if found == lost then
    found, of, known = nil, nil, nil
  end
  known = tonumber(known) or 0
  -- A server forgets after an hour that it was promoted: then only its start is known.
  if of and string.sub(life, -1) == '/' and string.sub(of, 1, #life) == life then
    life = of
  end
  if durable == '' then
    durable = of == life and kept or '0'
  end
  began = of == life and tonumber(began) or known
  -- A restart forgets nothing where the server wrote every change to disk before and does now.
  local age = 0
  if found and (of == life or kept == '1' and durable == '1') then
    age = known + math.min(math.max(now - last, 0), MOST)
  end
  birth = found or birth
  local text = string.format('%s %s %.0f %.0f %s %.0f', birth, life, age, now, durable, began)
  local stored = redis.pcall('SET', fingerprint, text, 'PX', keep_ms)
  -- Once more: a server writes two commands down as a transaction, as it does with a vote. What
  -- drops transactions at a start then drops the fingerprint with the votes.
  redis.pcall('PEXPIRE', fingerprint, keep_ms)
  if stored.err then
    age = math.min(age, known)
  end
  return found and 1 or 2, age, birth, stored.err or '', { now, began }
end

return each(1, 1, 4, 5, look)

----
-- voter/configuration: what the clients of this voter believe of its voters, and whether one
-- agrees.
-- libraries: time, each
-- KEYS, for each request: configurations
-- ARGV, for all requests: keep_ms
-- ARGV, for each request: mine, counts_ms, who, heard
--   mine: what the client believes: `1 <step> <voters> <old voters> <what else all have>`, where 1
--   is the format; counts_ms: for so long after a client was here others must agree with it; who:
--   its id, or nothing from one that only looks; heard: what a client of both sets has
--   heard from other voters, a line each: `<age in ms> <counts_ms> <config><tab><who>`; keep_ms:
--   how long a config is kept
-- returns, for each request: code, ms, id, configs
--   1, 0, '', configs    nobody was here who believes otherwise; who looks is not kept
--   2, 0, '', configs    somebody was, and mine is not kept
--   -1, 0, message, ''   this request failed, alone
--   configs: a line each: `<0, or 1 if it clashes> <age> <counts_ms> <config><tab><who>`
-- atomic, because of two clients that find nothing and would both be kept.

local keep_ms = ARGV[1]

-- No fleet has as many at once; whoever writes more is wrong.
local MOST = 16

-- Whether two configs clash, and how many steps the other one is ahead.
local function compare(mine, other)
  local pattern = '^1 (%d+) (%d+) (%d+) (.+)$'
  local step, voters, old, terms = string.match(mine, pattern)
  local its_step, its_voters, its_old, its_terms = string.match(other, pattern)
  -- Another format, of which nothing is known, among them.
  if terms ~= its_terms then
    return true, 0
  end
  local ahead, agree = its_step - step, mine == other
  -- Odd steps have both sets: the old one is that of the step before, the new one of the next.
  if ahead == 1 then
    agree = voters == (step % 2 == 0 and its_old or its_voters)
  elseif ahead == -1 then
    agree = its_voters == (step % 2 == 0 and voters or old)
  end
  return not agree, ahead
end

local function configuration(key, args, arg)
  local configurations = KEYS[key + 1]
  local mine, counts_ms, who, heard = unpack(args, arg + 1, arg + 4)
  local now, seen, all, lines, agreed = now_ms(), {}, {}, {}, true

  local function note(config, last, its_ms, by, is_new)
    local it = seen[config] or { config = config, last = 0 }
    if not seen[config] then
      seen[config], all[#all + 1] = it, it
    end
    if it.last <= last then
      it.last, it.ms, it.who, it.is_new = last, its_ms, by, is_new
    end
  end

  local kept = redis.call('HGETALL', configurations)
  for at = 1, #kept, 2 do
    local last, its_ms, by = string.match(kept[at + 1], '^(%d+) (%d+) (.*)$')
    -- A clock that was set back: seen just now, and no later.
    note(kept[at], math.min(last, now), its_ms, by, tonumber(last) > now)
  end
  for age, its_ms, config, by in string.gmatch(heard, '(%d+) (%d+) ([^\t]+)\t([^\n]*)') do
    note(config, now - age, its_ms, by, true)
  end
  for _, it in ipairs(all) do
    it.clashes, it.ahead = compare(mine, it.config)
  end
  for _, it in ipairs(all) do
    -- Voters that the next set does not name hear no more of it when the clients of both sets are
    -- gone. So what is two steps ahead counts until one of the step between has been here without
    -- it for as long.
    local since = it.ahead > 1 and 0 or now
    for _, other in ipairs(all) do
      if 0 < other.ahead and other.ahead < it.ahead then
        since = math.max(since, other.last)
      end
    end
    it.clashes = it.clashes and since < it.last + math.max(it.ms, counts_ms)
    agreed = agreed and not it.clashes
  end
  if agreed and who ~= '' then
    note(mine, now, counts_ms, who, true)
  end
  table.sort(all, function(one, other)
    return one.last > other.last or one.last == other.last and one.config < other.config
  end)
  if agreed and who ~= '' then
    for at, it in ipairs(all) do
      if at > MOST or now - it.last > tonumber(keep_ms) then
        redis.call('HDEL', configurations, it.config)
      elseif it.is_new then
        local text = string.format('%.0f %s %s', it.last, it.ms, it.who)
        redis.call('HSET', configurations, it.config, text)
      end
    end
    redis.call('PEXPIRE', configurations, keep_ms)
  end
  for at, it in ipairs(all) do
    local clashes = it.clashes and 1 or 0
    lines[at] = string.format('%d %.0f %s %s\t%s', clashes, now - it.last, it.ms, it.config, it.who)
  end
  return agreed and 1 or 2, 0, '', table.concat(lines, '\n')
end

return each(1, 1, 4, 4, configuration)
