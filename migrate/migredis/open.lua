-- Registers a pod; the first one writes the plan.
if run == '' then
  if redis.call('EXISTS', key('plan'), key('finished'), key('open')) > 0 then return fail('LOST') end
  run = a.new
  redis.call('SET', key('run'), run)
  redis.call('SET', key('plan'), a.plan)
  redis.call('SET', key('status'), 'NOT_STARTED')
  epoch = redis.call('INCR', key('epoch'))
end
return {epoch, run, redis.call('GET', key('plan'))}
