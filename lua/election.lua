-- What an election needs besides the scripts of a mutex, which release and inspect it.

----
-- election/acquire: requests the vote for a candidate, as mutex/acquire does. The record has its
-- value in place of a count.
-- Observers get no message: nobody leads before the winner confirms it with a renewal.
-- libraries: expire, time, fence, holder, vote, queue, call, enter, take, bid, ask, each
-- KEYS, for each request: lock, queue, alive, fence
-- ARGV, for all requests: calls, lease_ms, keep_ms, wait_ms
-- ARGV, for each request: hold, floor, ticket, value
--   floor, keep_ms, ticket: as in mutex/acquire
--   value: its version, a blank, and the leader's value
-- returns, for each request: code, ms, id, token, ticket
--   as mutex/acquire
-- atomic, because two waiters that look before either is entered would both be the last.
local lease_ms, keep_ms, wait_ms = unpack(ARGV, 2, 4)

local function acquire(key, args, arg)
  local lock, queue, alive, fence = unpack(KEYS, key + 1, key + 4)
  local hold, floor, ticket, value = unpack(args, arg + 1, arg + 4)
  return ask(lock, queue, alive, fence, hold, floor, ticket, value, lease_ms, keep_ms, wait_ms)
end

return each(4, 4, 4, 5, acquire)

----
-- election/renew: as mutex/renew, with the value of the leader in place of a count. It is stored
-- unless the voter has one of this version or a later one.
-- libraries: expire, time, fence, holder, vote, renew, publish, each
-- KEYS, for each request: lock, revoked, fence
-- ARGV, for all requests: lease_ms, keep_ms, publish
-- ARGV, for each request: hold, token, value, news, anew
--   value: its version, a blank, and the leader's value; news: the channel of observers, who get a
--   message when the vote is given or the value changes; anew: as mutex/renew
-- returns, for each request: code, ms, id
--   as mutex/renew
-- atomic, because a late renewal that looks at the version before a later one is stored would
-- write over it.
local lease_ms, keep_ms, publish = unpack(ARGV, 1, 3)

local function version(value)
  return tonumber(string.match(value, '^%d+')) or 0
end

local function renew(key, args, arg)
  local lock, revoked, fence = unpack(KEYS, key + 1, key + 3)
  local hold, token, value, news, anew = unpack(args, arg + 1, arg + 5)
  if redis.call('HEXISTS', revoked, hold) == 1 then
    return 2, 0, ''
  end
  local by, stands = holder(lock)
  if by and by ~= hold then
    return 0, redis.call('PTTL', lock), by
  end
  -- A late renewal must not bring an earlier value back.
  if by and version(stands) >= version(value) then
    value = stands
  end
  local code, ms, id =
    renew_only(lock, fence, lease_ms, keep_ms, hold, value, token, by, stands, anew)
  -- Also if the vote is given anew: an observer may have taken this leader for gone.
  if code == 1 and value ~= stands then
    announce(publish, news, '0')
  end
  return code, ms, id
end

return each(3, 3, 5, 3, renew)

----
-- election/look: returns who has the vote, and its value; changes nothing.
-- libraries: holder, each
-- KEYS, for each request: lock
-- ARGV, for all requests: none
-- ARGV, for each request: none
-- returns, for each request: code, ms, id, value
--   1, lease left in ms, holder, value   held (-1 ms: the record has no expiry)
--   0, -2, '', ''                        free
--   -1, 0, message, ''                   this request failed, alone
-- atomic, because holder and value must belong together.
local function look(key)
  local lock = KEYS[key + 1]
  local by, value = holder(lock)
  if not by then
    return 0, -2, '', ''
  end
  return 1, redis.call('PTTL', lock), by, value
end

return each(1, 0, 0, 4, look)
