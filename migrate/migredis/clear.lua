-- Takes rows out of the quarantine.
for _, k in ipairs(a.keys) do
  redis.call('HDEL', key('quarantine'), k)
  redis.call('ZREM', key('quarantine:keys'), k)
end
return {epoch}
