-- Goes before every script. KEYS[1] is the prefix of all keys, ARGV[1] the
-- arguments in JSON. Numbers of 64 bits come and go as text.
local a = cjson.decode(ARGV[1])
local function key(name) return KEYS[1] .. name end
local function fail(code, text) return {err = code .. ' ' .. (text or '')} end

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local run = redis.call('GET', key('run')) or ''
local epoch = tonumber(redis.call('GET', key('epoch')) or '0')
if a.run ~= '' and (run ~= a.run or epoch < a.epoch) then return fail('LOST') end

local status = redis.call('GET', key('status')) or 'NOT_STARTED'
local function control(field) return redis.call('HGET', key('control'), field) end

-- text writes a whole number without an exponent.
local function text(n) return string.format('%.0f', n) end
