-- rw/renew: keeps the vote, or takes it again on a voter that lost its data; sets a write's count,
-- and its token where the voter knows a lower one.
-- KEYS, for each request: writer, readers, revoked, fence
-- ARGV, for each request: hold, mode, count, lease_ms, token, keep_ms
--   token: '' for none; keep_ms: how long the fence is remembered
-- returns, for each request: code, ms, text
--   1, this voter's clock, text   granted; the clock in ms since 1970; text '' where the hold had
--                                 the vote, 'anew' where it had not
--   0, lease left in ms, holder   refused: the writer, or the last of the readers
--   2, 0, ''                      the hold was ended by force and gets no vote again
--   -1, 0, message                this request failed, alone
-- atomic, because a forced release between the check and the grant would be undone by it.
local function renew(writer, readers, revoked, fence, hold, mode, count, lease_ms, token, keep_ms)
  if redis.call('HEXISTS', revoked, hold) == 1 then
    return 2, 0, ''
  end
  sweep_readers(readers)
  local holder, ms = in_the_way(writer, readers, hold, mode)
  if holder then
    return 0, ms, holder
  end
  local text = grant(writer, readers, hold, mode, count, lease_ms, function(has)
    raise(fence, token, keep_ms)
    return has and '' or 'anew'
  end)
  return 1, now_ms(), text
end

return each(4, 6, renew)
