-- Gives a claim up.
if ended('released') then return {epoch} end
if not holds() then return fail('NOTHELD') end
redis.call('DEL', stem(a.pass, a.slot) .. ':worker')
if not entry(a.pass, a.slot).split and not states(a.pass, a.slot) then drop(a.pass, a.slot) end
ending('released')
return {epoch}
