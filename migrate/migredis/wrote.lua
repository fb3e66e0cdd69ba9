-- Records that somebody who holds no claim writes to the sink.
redis.call('HSET', key('control'), 'wrote', text(now))
return {epoch}
