-- time: one moment for the whole of a script, by this voter's clock.
local asked_ms
local function now_ms()
  if not asked_ms then
    local time = redis.call('TIME')
    asked_ms = time[1] * 1000 + math.floor(time[2] / 1000)
  end
  return asked_ms
end
