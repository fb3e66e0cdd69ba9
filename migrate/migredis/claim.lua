-- Claims the next slot.
if status ~= 'IN_PROGRESS' then return fail('STATUS', 'it is ' .. status) end

local function before(x, y)
  if x.index ~= y.index then return (tonumber(x.index) > tonumber(y.index)) ~= a.oldest end
  return tonumber(x.born) < tonumber(y.born)
end

local taken, part = {}, nil
for _, e in ipairs(entries(a.pass)) do
  local i, free = tonumber(e.index), not e.worker and not e.done
  if not e.below then
    taken[i] = not free
  elseif free and a.lo <= i and i < a.hi and (not part or before(e, part)) then
    part = e
  end
end

-- first returns the first index that is neither finished nor taken.
local function first()
  local spans, step = finished(a.pass), a.oldest and 1 or -1
  local n, i = a.oldest and 1 or #spans, a.oldest and a.lo or a.hi - 1
  while a.lo <= i and i < a.hi do
    local s = spans[n]
    if s and (a.oldest and s.hi <= i or not a.oldest and s.lo > i) then
      n = n + step
    elseif s and s.lo <= i and i < s.hi then
      i = a.oldest and s.hi or s.lo - 1
    elseif taken[i] then
      i = i + step
    else
      return i
    end
  end
end

local slot, e
if part then
  slot = part.slot
else
  local i = first()
  if not i then return fail('NOSLOT') end
  slot = name(i)
  e = {index = text(i)}
end
e = entry(a.pass, slot) or e
epoch = redis.call('INCR', key('epoch'))
put(a.pass, slot, e)
redis.call('SET', stem(a.pass, slot) .. ':worker', epoch .. ' ' .. a.token .. ' ' .. a.worker, 'PX', a.ttl)
return {epoch, cjson.encode(e), states(a.pass, slot) or ''}
