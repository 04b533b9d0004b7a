-- Questions about a voter, and not about a lock.

----
-- voter/look: reads this voter's fingerprint and writes it anew, which shows whether it takes
-- writes.
-- libraries: time, each
-- KEYS, for each request: fingerprint
-- ARGV, for all requests: keep_ms
-- ARGV, for each request: birth, life, durable, lost
--   birth: a random name for data that have none; life: another value after each start and
--   promotion of the server
--   durable: '1' if a restart forgets nothing, '0' if it may, '' if that is unknown
--   lost: the name of data that have lost something, or ''; keep_ms: how long the fingerprint lasts
-- returns, for each request: code, ms, id, refusal, times
--   1, age, birth, refusal, times   the data had a name; age: how long they lost nothing, in ms
--   2, 0, birth, refusal, times     the data had no name, or the one in `lost`, and have a new one
--   -1, 0, message, '', ''          this request failed, alone
--   refusal: why the fingerprint could not be written, or ''; then votes cannot be, either
--   times: what this voter's clock shows, in ms since 1970; how old the fingerprint was when a
--   client first looked at it in this life; and by how many ms the clock was set back since a
--   client looked and nothing was forgotten, until the data get another name
-- atomic, because of two clients that find no fingerprint and would give two names.

local keep_ms = ARGV[1]

-- One look makes the data older by so much at most, in ms, as this voter's clock may be set ahead.
-- Clients look every ten seconds.
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
  -- After an hour a server no longer shows that it was promoted. Then `life` only has its start,
  -- but it is the same life.
  if of and string.sub(life, -1) == '/' and string.sub(of, 1, #life) == life then
    life = of
  end
  if durable == '' then
    durable = of == life and kept or '0'
  end
  began = of == life and tonumber(began) or known
  -- A restart forgets nothing if the server wrote every change to disk before and does so now. By
  -- the settings of now alone, a server that lost its data would be believed (`0e59406a`).
  local age, set_back = 0, 0
  if found and (of == life or kept == '1' and durable == '1') then
    age = known + math.min(math.max(now - last, 0), MOST)
    -- Not otherwise: a server that forgets is young. A promoted one has another clock.
    set_back = math.max(last - now, 0)
  end
  birth = found or birth
  -- The highest time stays, until the data have another name or the clock shows it again: who sees
  -- first that the clock was set back may be gone before it has told anybody.
  local looked = now + set_back
  local text = string.format('%s %s %.0f %.0f %s %.0f', birth, life, age, looked, durable, began)
  local stored = redis.pcall('SET', fingerprint, text, 'PX', keep_ms)
  -- A second command, so that the server logs a transaction, as it does for a vote. A server that
  -- drops transactions at a start then drops the fingerprint with the votes, and that shows.
  redis.pcall('PEXPIRE', fingerprint, keep_ms)
  -- What is not stored does not count: the next client finds the old fingerprint.
  if stored.err then
    age = math.min(age, known)
  end
  return found and 1 or 2, age, birth, stored.err or '', { now, began, set_back }
end

return each(1, 1, 4, 5, look)

----
-- voter/configuration: the configurations of this voter's clients, and whether one client's agrees.
-- libraries: time, each
-- KEYS, for each request: configurations
-- ARGV, for all requests: keep_ms
-- ARGV, for each request: mine, counts_ms, who, heard
--   mine: the client's config: `1 <step> <voters> <old voters> <settings>`, where 1 is the format;
--   counts_ms: how long others must agree with a client after it was here; who: its id, or '' to
--   only read; heard: the entries that a client of both sets has from other voters, a line each:
--   `<age in ms> <counts_ms> <config><tab><who>`; keep_ms: how long a config is kept
-- returns, for each request: code, ms, id, configs
--   1, 0, '', configs    no client with a config that clashes was here; mine is kept, if who is set
--   2, 0, '', configs    such a client was here, and mine is not kept
--   -1, 0, message, ''   this request failed, alone
--   configs: a line each: `<0, or 1 if it clashes> <age> <counts_ms> <config><tab><who>`
-- atomic, because of two clients that find nothing and would both be kept.

local keep_ms = ARGV[1]

-- No set of clients has as many configurations at once. More are dropped, so a faulty client cannot
-- fill the memory.
local MOST = 16

-- Whether two configs clash, and how many steps the other one is ahead.
local function compare(mine, other)
  local pattern = '^1 (%d+) (%d+) (%d+) (.+)$'
  local step, voters, old, terms = string.match(mine, pattern)
  local its_step, its_voters, its_old, its_terms = string.match(other, pattern)
  -- Also if the other has another format: nothing is known of its clients.
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
    -- If this voter's clock was set back, the entry is of now: a time ahead would count for longer.
    note(kept[at], math.min(last, now), its_ms, by, tonumber(last) > now)
  end
  for age, its_ms, config, by in string.gmatch(heard, '(%d+) (%d+) ([^\t]+)\t([^\n]*)') do
    note(config, now - age, its_ms, by, true)
  end
  for _, it in ipairs(all) do
    it.clashes, it.ahead = compare(mine, it.config)
  end
  for _, it in ipairs(all) do
    -- A voter that is only in the old set hears nothing of the new set any more, once the clients
    -- of both sets are gone. So an entry that is two steps ahead clashes until a client of the step
    -- between is here, and the time for which the entry counts has passed by then. Otherwise a
    -- client of the old step would be let in beside clients of the new one.
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
