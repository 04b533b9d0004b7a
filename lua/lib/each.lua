-- each: runs `run` once per request, with what stands in KEYS and in the arguments before its own
-- entries: a request owns `keys_each` of KEYS and, behind the `shared` ones, `args_each` of the
-- arguments. It adds `width` entries, at most five, to the flat reply. One that raises an error, or
-- lacks an entry, answers -1, 0, the message, and harms no other: at a nil the server would end the
-- whole reply.
-- With one key more than the requests have, that is the mark of this voter's data: the reply has
-- one entry more, what the data are called; '' where the mark is gone. A packed reply, one text,
-- costs the client less to read, and a packed argument less to write: the arguments behind the
-- shared ones may be one. Where there is no cmsgpack, as in voters inside a process, replies are
-- the list itself.
local msgpack = rawget(_G, 'cmsgpack')

local function each(keys_each, shared, args_each, width, run)
  local args, first_arg, replies, at = ARGV, shared, {}, 0
  if args_each > 1 and #ARGV == shared + 1 then
    args, first_arg = msgpack.unpack(ARGV[#ARGV]), 0
  end
  for request = 0, #KEYS / keys_each - 1 do
    local ok, a, b, c, d, e =
      pcall(run, request * keys_each, args, first_arg + request * args_each)
    if a == nil or b == nil or c == nil or width > 3 and d == nil or width > 4 and e == nil then
      ok, a = false, ok and 'a part of the answer is missing' or a
    end
    if not ok then
      -- An error is a string on some servers and a table with the field err on others.
      a, b, c, d, e = -1, 0, type(a) == 'table' and a.err or tostring(a), '', ''
    end
    replies[at + 1], replies[at + 2], replies[at + 3] = a, b, c
    if width > 3 then
      replies[at + 4] = d
    end
    if width > 4 then
      replies[at + 5] = e
    end
    at = at + width
  end
  if #KEYS % keys_each == 1 then
    local mark = redis.pcall('GET', KEYS[#KEYS])
    replies[at + 1] = type(mark) == 'string' and string.match(mark, '^%S*') or ''
  end
  return msgpack and msgpack.pack(replies) or replies
end
