-- Returns a page of the ledger.
return {epoch, redis.call('LRANGE', key('ledger'), a.first, a.last)}
