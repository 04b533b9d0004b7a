-- What a job that runs once for each firing needs besides the scripts of a mutex.

----
-- once/note: returns which firing is done; stores a later one if this hold has the vote.
-- libraries: time, each
-- KEYS, for each request: lock, done
-- ARGV, for all requests: none
-- ARGV, for each request: hold, firing, when, memory_ms
--   hold: '' to copy a mark to other voters; firing: '' only asks; when: the moment at which it was
--   done, in ms since 1970, '' for now; memory_ms: how long after that the mark is kept; both ''
--   if it only asks
-- returns, for each request: code, ms, id, done
--   1, this voter's clock, '', done   the hold has the vote; the clock in ms since 1970
--   4, this voter's clock, '', done   it has none, and nothing was stored
--   -1, 0, message, ''                this request failed, alone
--   done: the latest firing that is done, when that was, and memory_ms, with blanks between them;
--   '' if there is none
-- atomic, because the vote may pass to another hold after the look, and a late request must not
-- write over a later firing.
local function note(key, args, arg)
  local lock, done = unpack(KEYS, key + 1, key + 2)
  local hold, firing, when, memory_ms = unpack(args, arg + 1, arg + 4)
  local latest = redis.call('GET', done) or ''
  -- A holder that was lost must store nothing for its successor (mutant `done_without_the_vote`).
  if hold ~= '' and redis.call('HEXISTS', lock, hold) == 0 then
    return 4, now_ms(), '', latest
  end
  local before = tonumber(string.match(latest, '^%d+')) or -1
  if firing ~= '' and tonumber(firing) > before then
    local lease_ms = redis.call('PTTL', lock)
    if hold ~= '' and lease_ms > 0 then
      -- Changes nothing. After a first write that takes no memory, a full server refuses no other:
      -- the work is done, and must not be done again for lack of memory.
      redis.call('PEXPIRE', lock, lease_ms)
    end
    when = math.min(tonumber(when) or now_ms(), now_ms())
    latest = string.format('%s %.0f %s', firing, when, memory_ms)
    -- A mark ends everywhere at about the same time, however often it is copied. But never before
    -- the mark that it replaces: by a clock that is ahead it would be over at once.
    local left = math.max(when + memory_ms - now_ms(), redis.call('PTTL', done), 1)
    redis.call('SET', done, latest, 'PX', string.format('%.0f', left))
  end
  return 1, now_ms(), '', latest
end

return each(2, 0, 4, 4, note)

----
-- once/forget: deletes the mark of the latest firing.
-- libraries: each
-- KEYS, for each request: done
-- ARGV, for all requests: none
-- ARGV, for each request: none
-- returns, for each request: code, ms, id
--   1, 0, ''         it is deleted
--   0, 0, ''         there was none
--   -1, 0, message   this request failed, alone
-- atomic, because it is one command.
local function forget(key)
  local done = KEYS[key + 1]
  return redis.call('DEL', done), 0, ''
end

return each(1, 0, 0, 3, forget)
