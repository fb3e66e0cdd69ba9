-- Writes the plan with what there is to migrate, as the Keeper of a term. What
-- was written once stays.
if redis.call('GET', key('keeper')) ~= a.keeper then return fail('NOTHELD') end
if status ~= 'TO_START' then return fail('STATUS', 'it is ' .. status) end
if redis.call('HSETNX', key('control'), 'surveyed', text(now)) == 1 then redis.call('SET', key('plan'), a.plan) end
return {epoch, redis.call('GET', key('plan'))}
