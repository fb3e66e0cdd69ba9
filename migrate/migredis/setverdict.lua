-- Records a verdict. A bad one stays until a full verification comes out clean
-- that compared nothing before it. The mark goes if it is of the verification
-- that came to it.

-- moment writes a time in UTC with nine digits of a second, so that what comes
-- later is greater.
local function moment(t)
  local second, fraction = t:match('^([^.]*)%.?(%d*)Z$')
  return second .. '.' .. fraction .. string.rep('0', 9 - #fraction)
end

local old, new = redis.call('GET', key('verdict')), cjson.decode(a.verdict)
local was = old and cjson.decode(old)
if not old or was.clean or not new.clean or new.mode == 'full' and moment(new.since) >= moment(was.at) then
  redis.call('SET', key('verdict'), a.verdict)
end
if redis.call('HGET', key('mark'), 'verifier') == a.verifier then redis.call('DEL', key('mark')) end
return {epoch}
