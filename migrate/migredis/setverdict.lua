-- Records a verdict. A bad one stays until a full verification comes out clean.
local old = redis.call('GET', key('verdict'))
if not old or a.replaces or cjson.decode(old).clean then redis.call('SET', key('verdict'), a.verdict) end
return {epoch}
