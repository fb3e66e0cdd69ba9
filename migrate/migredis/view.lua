-- Returns everything at a glance, in JSON.
local open = {}
for i, e in ipairs(entries()) do
  open[i] = {pass = e.pass, entry = e.raw, worker = e.worker or nil, states = not e.done and states(e.pass, e.slot) or nil}
end

-- hash returns a hash as a table, and nil for none.
local function hash(name)
  local flat, all = redis.call('HGETALL', key(name)), nil
  for i = 1, #flat, 2 do
    all = all or {}
    all[flat[i]] = flat[i + 1]
  end
  return all
end

return {epoch, cjson.encode({
  now = text(now), status = status, plan = redis.call('GET', key('plan')) or nil, keeper = redis.call('GET', key('keeper')) or nil,
  control = hash('control'), finished = hash('finished'), counts = hash('counts'), open = #open > 0 and open or nil,
})}
