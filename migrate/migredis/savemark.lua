-- Saves how far a verification has come, whose the mark must be.
if redis.call('HGET', key('mark'), 'verifier') ~= a.verifier then return fail('NOTHELD') end
redis.call('HSET', key('mark'), 'mark', a.mark)
return {epoch}
