-- Takes or prolongs the Keeper's lock.
local old, leader = string.match(redis.call('GET', key('keeper')) or '', '^(%d+) (.*)$')
if leader and leader ~= a.keeper then return fail('NOTHELD', leader .. ' leads') end
if not leader then
  epoch = redis.call('INCR', key('epoch'))
  old = text(epoch)
end
redis.call('SET', key('keeper'), old .. ' ' .. a.keeper, 'PX', a.ttl)
return {epoch, old}
