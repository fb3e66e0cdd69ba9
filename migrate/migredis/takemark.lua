-- Gives the mark to a verification and returns what was saved last.
redis.call('HSET', key('mark'), 'verifier', a.verifier)
return {epoch, redis.call('HGET', key('mark'), 'mark') or ''}
