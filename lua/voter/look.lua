-- voter/look: what this voter's data say of themselves, and whether it takes new ones.
-- KEYS, for each request: mark
-- ARGV, for all requests: keep_ms
-- ARGV, for each request: birth, life, durable
--   birth: a random name for data that have none; life: another one after each start and promotion
--   of the server; durable: '1' where it forgets nothing by a restart, '0' where it may, '' where
--   that is not known; keep_ms: how long the mark is kept
-- returns, for each request: code, ms, id, refusal, clock
--   1, age, birth, refusal, clock   these data were met before; age: for how long they are known
--                                   and nothing of them was forgotten, in ms
--   2, 0, birth, refusal, clock     nobody has met them before, or the mark is gone with others
--   -1, 0, message, '', ''          this request failed, alone
--   refusal: why the mark was not written, if it was not; then nothing else is, either; clock: what
--   this voter's clock shows, in ms since 1970
-- atomic, because of two clients that find no mark and would give two names.

local keep_ms = ARGV[1]

-- The clock that shows the age may be set ahead. One look makes it older by so much at most, in ms;
-- clients look every ten seconds.
local MOST = 15000

local function look(key, args, arg)
  local mark = KEYS[key + 1]
  local birth, life, durable = unpack(args, arg + 1, arg + 3)
  local now = now_ms()
  local found, of, age, last, kept =
    string.match(redis.call('GET', mark) or '', '^(%S+) (%S+) (%d+) (%d+) ([01])$')
  -- A server forgets after an hour that it was promoted: then only its start is known.
  if of and string.sub(life, -1) == '/' and string.sub(of, 1, #life) == life then
    life = of
  end
  if durable == '' then
    durable = of == life and kept or '0'
  end
  -- A restart forgets nothing where the server wrote every change to disk before and does now.
  if of == life or kept == '1' and durable == '1' then
    age = age + math.min(math.max(now - last, 0), MOST)
  else
    age = 0
  end
  birth = found or birth
  local text = string.format('%s %s %.0f %.0f %s', birth, life, age, now, durable)
  local stored = redis.pcall('SET', mark, text, 'PX', keep_ms)
  return found and 1 or 2, age, birth, stored.err or '', now
end

return each(1, 1, 3, 5, look)
