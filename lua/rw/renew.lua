-- rw/renew: keeps the vote, or says that the hold has none; sets a write's count, and its token
-- where the voter knows a lower one.
-- KEYS, for each request: writer, readers, revoked, fence
-- ARGV, for all requests: mode, lease_ms, keep_ms
-- ARGV, for each request: hold, count, token, anew
--   token: '' for none; keep_ms: how long the fence is remembered; anew '1': the hold is given the
--   vote where nobody is in the way
-- returns, for each request: code, ms, id
--   1, this voter's clock, ''     granted; the clock in ms since 1970
--   0, lease left in ms, holder   refused: the writer, or the last of the readers
--   2, 0, ''                      the hold was ended by force and gets no vote again
--   4, 0, ''                      the hold has no vote, and it was not given
--   -1, 0, message                this request failed, alone
-- atomic, because a forced release between the check and the grant would be undone by it.
local mode, lease_ms, keep_ms = unpack(ARGV, 1, 3)

local function renew(key, args, arg)
  local writer, readers, revoked, fence = unpack(KEYS, key + 1, key + 4)
  local hold, count, token, anew = unpack(args, arg + 1, arg + 4)
  if redis.call('HEXISTS', revoked, hold) == 1 then
    return 2, 0, ''
  end
  sweep_readers(readers)
  local holding, ms, by, entered = in_the_way(writer, readers, hold, mode)
  if holding then
    return 0, ms, holding
  end
  if mode == 'read' then
    if share(readers, hold, tonumber(lease_ms), anew == '') then
      return 1, now_ms(), ''
    end
    return 4, 0, ''
  end
  return renew_only(writer, fence, lease_ms, keep_ms, hold, count, token, by, entered, anew)
end

return each(4, 3, 4, 3, renew)
