-- Returns what there is to know of what no slot tells.
return {epoch, control('wrote') or '', control('cleared') or '0', redis.call('ZCARD', key('quarantine:keys'))}
