-- Prolongs a claim.
if not holds() then return fail('NOTHELD') end
redis.call('PEXPIRE', stem(a.pass, a.slot) .. ':worker', a.ttl)
return {epoch}
