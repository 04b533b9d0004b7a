-- expire: gives a record that was just written its end, or takes it back: none stays without one.
local function expire(key, ms)
  local done = redis.pcall('PEXPIRE', key, ms)
  if type(done) == 'table' and done.err then
    redis.call('DEL', key)
    error(done.err, 0)
  end
end
