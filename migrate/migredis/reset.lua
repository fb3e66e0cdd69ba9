-- Removes everything but the epoch.
local n = live()
if n > 0 then return fail('STATUS', n .. ' slots are being worked on') end
for _, id in ipairs(redis.call('HKEYS', key('open'))) do
  drop(string.match(id, '^(%S+) (.*)$'))
end
redis.call('DEL', key('status'), key('plan'), key('run'), key('keeper'), key('last_slot'), key('finished'), key('ledger'),
  key('open'), key('control'), key('counts'), key('ended'), key('quarantine'), key('quarantine:keys'), key('verdict'),
  key('mark'))
return {redis.call('INCR', key('epoch'))}
