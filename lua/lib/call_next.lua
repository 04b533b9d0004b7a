-- call_next: wakes those who wait for a read/write lock.

-- A vote or a place is gone that others may have waited for: calls the first in the queue if that
-- is a writer and nobody holds; where a writer has gone, also the readers before the first writer.
-- Who gives the vote back and stays in the queue knows.
local function call_next(writer, readers, queue, writers, gone, place)
  if redis.call('EXISTS', writer) == 1 then
    return
  end
  local next_writer = first(writers)
  local rank = next_writer and redis.call('ZRANK', queue, next_writer) or -1
  if rank == 0 then
    if next_writer ~= place and redis.call('EXISTS', readers) == 0 then
      call(next_writer)
    end
  elseif gone == 'write' then
    for _, reader in ipairs(redis.call('ZRANGE', queue, 0, rank >= 0 and rank - 1 or -1)) do
      if reader ~= place then
        call(reader)
      end
    end
  end
end
