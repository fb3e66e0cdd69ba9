-- Records a slot, and empty ones beside it, as finished.
if ended('finished') then return {epoch} end
if not holds() then return fail('NOTHELD') end
local e = entry(a.pass, a.slot)
if a.end_ and e.lo ~= a.end_ then return fail('NOTHELD', 'its end is behind what was saved') end
if not ahead() then return fail('NOTHELD', 'its progress is behind what was saved') end

local spans, who = finished(a.pass), string.match(worker(a.pass, a.slot), '^%S+ %S+ (.*)$')

-- add puts [lo, hi) among the spans.
local function add(lo, hi)
  if lo >= hi then return end
  local all, placed = {}, false
  for _, s in ipairs(spans) do
    if s.hi < lo then
      all[#all + 1] = s
    elseif hi < s.lo then
      if not placed then all[#all + 1], placed = {lo = lo, hi = hi}, true end
      all[#all + 1] = s
    else
      lo, hi = math.min(lo, s.lo), math.max(hi, s.hi)
    end
  end
  if not placed then all[#all + 1] = {lo = lo, hi = hi} end
  spans = all
end

local index, taken, pieces, others = tonumber(e.index), {}, {}, false
taken[1] = index
for _, o in ipairs(entries(a.pass)) do
  local i = tonumber(o.index)
  taken[#taken + 1] = i
  if i == index then
    pieces[#pieces + 1] = o.slot
    others = others or o.slot ~= a.slot and not o.done
  end
end

-- Of the empty ones, those that somebody works on are not finished by this.
table.sort(taken)
local at, empty = a.lo, 0
for _, i in ipairs(taken) do
  if at <= i and i < a.hi then
    add(at, i)
    empty, at = empty + i - at, i + 1
  end
end
add(at, a.hi)
empty = empty + math.max(0, a.hi - at)

if others then
  e.split, e.done = true, true
  put(a.pass, a.slot, e)
  redis.call('SET', stem(a.pass, a.slot) .. ':states', a.states, 'PX', a.progress_ttl)
  redis.call('DEL', stem(a.pass, a.slot) .. ':worker')
else
  for _, slot in ipairs(pieces) do drop(a.pass, slot) end
  add(index, index + 1)
end

local list = {}
for i, s in ipairs(spans) do list[i] = text(s.lo) .. ':' .. text(s.hi) end
if #list > 0 then redis.call('HSET', key('finished'), a.pass, table.concat(list, ' ')) end
if a.pass == 'copying' then
  local s = a.oldest and spans[1] or spans[#spans]
  if s and a.oldest and s.lo <= a.slots_lo then redis.call('SET', key('last_slot'), name(s.hi - 1)) end
  if s and not a.oldest and s.hi >= a.slots_hi then redis.call('SET', key('last_slot'), name(s.lo)) end
end
for field, n in pairs(a.counts) do redis.call('HINCRBY', key('counts'), field, n) end
local number = redis.call('LLEN', key('ledger')) + 1
redis.call('RPUSH', key('ledger'), string.sub(a.line, 1, -2) ..
  string.format(',"worker":%s,"number":%.0f,"empty":%.0f,"at_ms":%.0f}', cjson.encode(who), number, empty, now))
ending('finished')
return {epoch}
