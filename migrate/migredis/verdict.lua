-- Returns the verdict.
return {epoch, redis.call('GET', key('verdict')) or ''}
