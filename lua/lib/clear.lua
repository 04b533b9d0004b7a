-- clear: takes out what no script of a lock has written. Only what an operator asks for does this.

-- Deletes keys of whatever type; how many there were.
local function wipe(...)
  return redis.call('DEL', ...)
end

-- What a command reads from a key; nil, and no more key, where that has another type.
local function readable(command, key, ...)
  local reply = redis.pcall(command, key, ...)
  if type(reply) ~= 'table' or not reply.err then
    return reply, 0
  end
  if not string.find(reply.err, 'WRONGTYPE', 1, true) then
    error(reply.err, 0)
  end
  return nil, wipe(key)
end

-- A hold: one field, which begins with a count.
local function keep_hold(key)
  local record, gone = readable('HGETALL', key)
  if not record or #record == 0 then
    return gone
  end
  local hold, count = record[1], tonumber(string.match(record[2], '^%S+'))
  local is_hold = #record == 2 and hold ~= '' and count and count > 0
  return is_hold and 0 or wipe(key)
end

-- What this command reads: it is of the right type.
local function keep_type(command, key, ...)
  local _, gone = readable(command, key, ...)
  return gone
end
