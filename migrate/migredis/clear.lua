-- Takes rows out of the quarantine and counts them.
local cleared = 0
for _, k in ipairs(a.keys) do
  cleared = cleared + redis.call('ZREM', key('quarantine:keys'), k)
  redis.call('HDEL', key('quarantine'), k)
end
if cleared > 0 then redis.call('HINCRBY', key('control'), 'cleared', cleared) end
return {epoch}
