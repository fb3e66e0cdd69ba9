-- Tells owners that a worker is idle.
local till = now + a.ttl
if till > tonumber(control('wanted') or '0') then redis.call('HSET', key('control'), 'wanted', text(till)) end
return {epoch}
