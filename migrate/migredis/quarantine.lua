-- Adds rows to the quarantine, as the owner of a claim.
if not holds() then return fail('NOTHELD') end
for i, k in ipairs(a.keys) do
  redis.call('HSET', key('quarantine'), k, a.rows[i])
  redis.call('ZADD', key('quarantine:keys'), 0, k)
end
return {epoch}
