-- Slots: their names, keys, holders, and what is open and finished.

-- civil returns the date that lies days after 1970-01-01 (Howard Hinnant,
-- "chrono-Compatible Low-Level Date Algorithms").
local function civil(days)
  days = days + 719468
  local era = math.floor(days / 146097)
  local doe = days - era * 146097
  local yoe = math.floor((doe - math.floor(doe / 1460) + math.floor(doe / 36524) - math.floor(doe / 146096)) / 365)
  local doy = doe - (365 * yoe + math.floor(yoe / 4) - math.floor(yoe / 100))
  local mp = math.floor((5 * doy + 2) / 153)
  local month = mp < 10 and mp + 3 or mp - 9
  return yoe + era * 400 + (month <= 2 and 1 or 0), month, doy - math.floor((153 * mp + 2) / 5) + 1
end

-- name returns the name of slot i, like migrate.Axis.Name.
local function name(i)
  local at = i * a.width
  if a.layout == 'integer' then return text(at) end
  local days = math.floor(at / 86400000)
  local ms = at - days * 86400000
  local year, month, day = civil(days)
  local date = string.format('%04d%02d%02d.%02d', year, month, day, math.floor(ms / 3600000))
  if a.layout == 'hour' then return date end
  date = date .. string.format('%02d', math.floor(ms / 60000) % 60)
  if a.layout == 'minute' then return date end
  return date .. string.format('%02d.%03d', math.floor(ms / 1000) % 60, ms % 1000)
end

-- stem returns what the keys of a slot begin with.
local function stem(pass, slot)
  if pass == 'sweeping' then return key(slot .. ':sweep') end
  return key(slot)
end

local function worker(pass, slot) return redis.call('GET', stem(pass, slot) .. ':worker') end
local function states(pass, slot) return redis.call('GET', stem(pass, slot) .. ':states') end

-- holds reports whether whoever calls holds its slot. a.holder is its epoch
-- and its token.
local function holds()
  local w = worker(a.pass, a.slot)
  return w and string.sub(w, 1, #a.holder) == a.holder
end

local function entry(pass, slot)
  local e = redis.call('HGET', key('open'), pass .. ' ' .. slot)
  return e and cjson.decode(e)
end
local function put(pass, slot, e) redis.call('HSET', key('open'), pass .. ' ' .. slot, cjson.encode(e)) end

-- entries returns what is open, of one pass or of both, without what nothing
-- is known of any more.
local function entries(only)
  local flat, all = redis.call('HGETALL', key('open')), {}
  for i = 1, #flat, 2 do
    local pass, slot = string.match(flat[i], '^(%S+) (.*)$')
    if not only or pass == only then
      local e = cjson.decode(flat[i + 1])
      e.pass, e.slot, e.raw = pass, slot, flat[i + 1]
      e.worker = not e.done and worker(pass, slot)
      if e.worker or e.split or redis.call('EXISTS', stem(pass, slot) .. ':states') == 1 then
        all[#all + 1] = e
      else
        redis.call('HDEL', key('open'), flat[i])
      end
    end
  end
  return all
end

local function live()
  local n = 0
  for _, e in ipairs(entries()) do
    if e.worker then n = n + 1 end
  end
  return n
end

-- drop removes all keys of a slot.
local function drop(pass, slot)
  redis.call('HDEL', key('open'), pass .. ' ' .. slot)
  redis.call('DEL', stem(pass, slot) .. ':worker', stem(pass, slot) .. ':states')
end

-- finished returns the finished spans of a pass, rising.
local function finished(pass)
  local spans = {}
  for lo, hi in string.gmatch(redis.call('HGET', key('finished'), pass) or '', '(-?%d+):(-?%d+)') do
    spans[#spans + 1] = {lo = tonumber(lo), hi = tonumber(hi)}
  end
  return spans
end

-- ahead reports whether progress is not behind what was saved. Keys cannot be
-- compared here; the rows read tell which is further.
local function ahead()
  local old = states(a.pass, a.slot)
  if not old then return true end
  old = cjson.decode(old)
  return a.read > old.counts.read or a.read == old.counts.read and a.last == old.last_id
end

-- save records progress and prolongs the claim.
local function save()
  redis.call('SET', stem(a.pass, a.slot) .. ':states', a.states, 'PX', a.progress_ttl)
  redis.call('PEXPIRE', stem(a.pass, a.slot) .. ':worker', a.ttl)
end

-- ended reports whether this claim ended already, by how.
local function ended(how) return redis.call('HGET', key('ended'), a.claim) == how .. ' ' .. a.token end

-- ending remembers how the claim ended, and forgets ends of long ago.
local function ending(how)
  redis.call('HSET', key('ended'), a.claim, how .. ' ' .. a.token)
  if redis.call('HLEN', key('ended')) <= 2048 then return end
  for _, e in ipairs(redis.call('HKEYS', key('ended'))) do
    if tonumber(e) < epoch - 1024 then redis.call('HDEL', key('ended'), e) end
  end
end
