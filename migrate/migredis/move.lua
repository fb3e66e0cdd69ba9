-- Changes the status by compare-and-set. a.condition is what has to hold.
local generation = control('generation') or '0'
if status ~= a.from or generation ~= a.generation then
  return fail('STATUS', 'it is ' .. status .. ' in generation ' .. generation)
end
if a.condition == 'never' then return fail('STATUS', 'there is no such change') end

-- covered reports whether all of [lo, hi) is finished.
local function covered(pass, lo, hi)
  if lo >= hi then return true end
  for _, s in ipairs(finished(pass)) do
    if s.lo <= lo and hi <= s.hi then return true end
  end
  return false
end

if a.condition ~= 'always' then
  local n = live()
  if n > 0 then return fail('STATUS', n .. ' slots are being worked on') end
end
if a.condition == 'complete' and not (control('phase') == 'done' and
    covered('copying', a.slots_lo, a.slots_hi) and covered('sweeping', a.sweep_lo, a.sweep_hi)) then
  return fail('STATUS', 'not everything is finished')
end
redis.call('SET', key('status'), a.to)
if a.to == 'TO_START' then redis.call('HINCRBY', key('control'), 'generation', 1) end
if a.to == 'IN_PROGRESS' then redis.call('HSETNX', key('control'), 'started', text(now)) end
return {epoch}
