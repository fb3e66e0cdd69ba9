-- Records progress and makes a slot of what its owner gives up.
if not holds() then return fail('NOTHELD') end
local e, rest = entry(a.pass, a.slot), entry(a.pass, a.rest)
if rest and e.lo ~= a.end_ then return fail('NOTHELD', 'its end is behind what was saved') end
if not ahead() then return fail('NOTHELD', 'its progress is behind what was saved') end
save()
e.split, e.lo = true, a.end_
put(a.pass, a.slot, e)
if not rest then
  epoch = redis.call('INCR', key('epoch'))
  put(a.pass, a.rest, {index = e.index, below = a.end_, lo = a.rest_end, born = text(epoch), split = true})
  redis.call('HDEL', key('control'), 'wanted')
  if a.rest_states then
    redis.call('SET', stem(a.pass, a.rest) .. ':states', a.rest_states, 'PX', a.progress_ttl)
  end
end
return {epoch}
