-- voter/look: what this voter's data say of themselves, and whether it takes new ones.
-- KEYS, for each request: mark
-- ARGV, for all requests: keep_ms
-- ARGV, for each request: birth, life, durable, lost
--   birth: a random name for data that have none; life: another one after each start and promotion
--   of the server; durable: '1' where it forgets nothing by a restart, '0' where it may, '' where
--   that is not known; lost: the name of data that are known to lack something, or ''; keep_ms: how
--   long the mark is kept
-- returns, for each request: code, ms, id, refusal, times
--   1, age, birth, refusal, times   these data were met before; age: for how long they are known
--                                   and nothing of them was forgotten, in ms
--   2, 0, birth, refusal, times     nobody has met them before, or the mark is gone with others, or
--                                   they were of the name that is `lost`: they have a new one
--   -1, 0, message, '', ''          this request failed, alone
--   refusal: why the mark was not written, if it was not; then nothing else is, either; times: what
--   this voter's clock shows, in ms since 1970, and how old the mark was when the first client
--   looked at it in this life
-- atomic, because of two clients that find no mark and would give two names.

local keep_ms = ARGV[1]

-- The clock that shows the age may be set ahead. One look makes it older by so much at most, in ms;
-- clients look every ten seconds.
local MOST = 15000

local function look(key, args, arg)
  local mark = KEYS[key + 1]
  local birth, life, durable, lost = unpack(args, arg + 1, arg + 4)
  local now = now_ms()
  local found, of, known, last, kept, began =
    string.match(redis.call('GET', mark) or '', '^(%S+) (%S+) (%d+) (%d+) ([01]) (%d+)$')
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
  local stored = redis.pcall('SET', mark, text, 'PX', keep_ms)
  -- Once more: a server writes two commands down as a transaction, as it does with a vote. What
  -- drops transactions at a start then drops the mark with the votes.
  redis.pcall('PEXPIRE', mark, keep_ms)
  if stored.err then
    age = math.min(age, known)
  end
  return found and 1 or 2, age, birth, stored.err or '', { now, began }
end

return each(1, 1, 4, 5, look)
