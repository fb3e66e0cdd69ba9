-- Adds rows to the quarantine, as the Keeper of a term, and counts the new ones.
if redis.call('GET', key('keeper')) ~= a.keeper then return fail('NOTHELD') end
local added = 0
for i, k in ipairs(a.keys) do
  added = added + redis.call('HSET', key('quarantine'), k, a.rows[i])
  redis.call('ZADD', key('quarantine:keys'), 0, k)
end
if added > 0 then redis.call('HINCRBY', key('counts'), 'quarantined', added) end
return {epoch}
