-- For people: what is known of one upstream with one credential; nothing is changed.
local key = redis.call('HMGET', KEY, 'quota', 'held_until', 'open_until', 'probe', 'probe_began',
  'run', 'weight', 'ill')
local load = redis.call('HMGET', LOAD, 'in_flight', 'retrying')
for i = 1, 8 do key[i] = key[i] or '' end
return {text(now), key[1], key[2], key[3], key[4], key[5], key[6], key[7], key[8],
  load[1] or '0', load[2] or '0', tostring(redis.call('ZCARD', QUEUE))}
