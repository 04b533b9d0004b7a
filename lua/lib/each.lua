-- each: runs `run` once per request. A request owns `keys_each` entries of KEYS and `args_each` of
-- ARGV, and adds code, ms, text to the flat reply. One that raises an error answers -1, 0, message
-- and harms no other.
local function each(keys_each, args_each, run)
  local replies = {}
  for request = 0, #KEYS / keys_each - 1 do
    local given = { unpack(KEYS, request * keys_each + 1, (request + 1) * keys_each) }
    for a = 1, args_each do
      given[keys_each + a] = ARGV[request * args_each + a]
    end
    local ok, code, ms, text = pcall(run, unpack(given))
    if not ok then
      -- An error is a string on some servers and a table with the field err on others.
      text = type(code) == 'table' and code.err or tostring(code)
      code, ms = -1, 0
    end
    local at = 3 * request
    replies[at + 1], replies[at + 2], replies[at + 3] = code, ms, text
  end
  return replies
end
