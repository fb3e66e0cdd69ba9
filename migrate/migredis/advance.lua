-- Moves the phase on, or gives the lock up, as the Keeper of a term.
if redis.call('GET', key('keeper')) ~= a.keeper then return fail('NOTHELD') end
if a.resign then
  redis.call('DEL', key('keeper'))
  return {epoch}
end
local rank = {copy = 1, sweep = 2, outbox = 3, done = 4}
local phase = control('phase') or 'copy'
if (rank[a.to] or 0) < rank[phase] then return fail('STATUS', 'the phase is ' .. phase) end
redis.call('HSET', key('control'), 'phase', a.to)
return {epoch}
