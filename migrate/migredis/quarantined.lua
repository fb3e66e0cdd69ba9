-- Returns a page of the quarantine.
local from = a.after == '' and '-' or '(' .. a.after
local keys = redis.call('ZRANGEBYLEX', key('quarantine:keys'), from, '+', 'LIMIT', 0, a.limit)
local rows = {}
for i, k in ipairs(keys) do rows[i] = redis.call('HGET', key('quarantine'), k) end
return {epoch, rows}
