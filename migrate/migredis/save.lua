-- Records progress.
if not holds() then return fail('NOTHELD') end
if entry(a.pass, a.slot).lo ~= a.end_ then return fail('NOTHELD', 'its end is behind what was saved') end
if not ahead() then return fail('NOTHELD', 'its progress is behind what was saved') end
save()
return {epoch, now < tonumber(control('wanted') or '0') and 1 or 0}
