-- sandbox: makes what a script sees of the world.
-- takes: command, which runs a redis command and answers its reply, an error as { err = message };
-- sha1hex, which gives the hash of a text
-- returns: the environment of scripts; the table behind it, for KEYS and ARGV; a pcall for scripts
local command, sha1hex = ...

-- What is safe and gives the same result every time. As on a server nothing here opens files,
-- loads code or can be changed by a script.
local shared = { 'assert', 'error', 'getmetatable', 'ipairs', 'next', 'pairs', 'rawequal', 'rawget',
  'select', 'setmetatable', 'tonumber', 'tostring', 'type', 'unpack', 'xpcall', '_VERSION' }

local raise, native_pcall, kind, lock = error, pcall, type, setmetatable

local function refuse()
  raise('Attempt to modify a readonly table', 2)
end

local function readonly(content)
  return lock({}, { __index = content, __newindex = refuse, __metatable = false })
end

-- Passes on the results of a pcall; an error of a command becomes its message, as on a server.
local function outcome(ok, first, ...)
  if not ok and kind(first) == 'table' and kind(first.err) == 'string' then
    return false, first.err
  end
  return ok, first, ...
end

local function call(...)
  local reply = command(...)
  if kind(reply) == 'table' and reply.err then
    raise(reply)
  end
  return reply
end

local function protected_call(...)
  return outcome(native_pcall(...))
end

math.random, math.randomseed = nil, nil
getmetatable('').__metatable = false

local globals = {
  math = readonly(math), string = readonly(string), table = readonly(table),
  redis = readonly({ call = call, pcall = command, sha1hex = sha1hex }),
  pcall = protected_call,
}
for _, name in ipairs(shared) do
  globals[name] = _G[name]
end
lock(globals, {
  __index = function(_, name)
    raise("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2)
  end,
})
local environment = readonly(globals)
globals._G = environment
return environment, globals, protected_call
