-- Records a verdict. A bad one stays until a full verification comes out clean.
-- The mark goes if it is of the verification that came to it.
local old = redis.call('GET', key('verdict'))
if not old or a.replaces or cjson.decode(old).clean then redis.call('SET', key('verdict'), a.verdict) end
if redis.call('HGET', key('mark'), 'verifier') == a.verifier then redis.call('DEL', key('mark')) end
return {epoch}
