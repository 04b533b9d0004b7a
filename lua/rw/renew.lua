-- rw/renew: keeps the vote, or takes it again on a voter that lost its data; sets a write's count,
-- and its token where the voter knows a lower one.
-- KEYS, for each request: writer, readers, revoked, fence
-- ARGV, for all requests: mode, lease_ms, keep_ms
-- ARGV, for each request: hold, count, token
--   token: '' for none; keep_ms: how long the fence is remembered
-- returns, for each request: code, ms, id, anew
--   1, this voter's clock, '', anew  granted; the clock in ms since 1970; anew 0 where the hold had
--                                    the vote, 1 where it had not
--   0, lease left in ms, holder, 0   refused: the writer, or the last of the readers
--   2, 0, '', 0                      the hold was ended by force and gets no vote again
--   -1, 0, message, ''               this request failed, alone
-- atomic, because a forced release between the check and the grant would be undone by it.
local mode, lease_ms, keep_ms = unpack(ARGV, 1, 3)

local function renew(key, args, arg)
  local writer, readers, revoked, fence = unpack(KEYS, key + 1, key + 4)
  local hold, count, token = unpack(args, arg + 1, arg + 3)
  if redis.call('HEXISTS', revoked, hold) == 1 then
    return 2, 0, '', 0
  end
  sweep_readers(readers)
  local holding, ms, by, entered = in_the_way(writer, readers, hold, mode)
  if holding then
    return 0, ms, holding, 0
  end
  if mode == 'read' then
    local had = share(readers, hold, tonumber(lease_ms))
    return 1, now_ms(), '', had and 0 or 1
  end
  return renew_only(writer, fence, lease_ms, keep_ms, hold, count, token, by, entered)
end

return each(4, 3, 3, 4, renew)
