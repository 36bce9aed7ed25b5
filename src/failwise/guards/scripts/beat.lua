-- A process says what it really holds: its lease goes on, and what was lost on the way is set right.
-- ARGV 4 requests under way, 5 retries among them, 6 "1": callers of it wait for a slot.

local n, r, waits = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6] == '1'
bury_dead()
local load = redis.call('HMGET', LOAD, 'in_flight', 'retrying', 'n:' .. owner, 'r:' .. owner)
redis.call('HSET', LOAD,
  'in_flight', math.max(0, whole(load[1]) - whole(load[3]) + n),
  'retrying', math.max(0, whole(load[2]) - whole(load[4]) + r))
if n > 0 or waits then
  redis.call('HSET', LOAD, 'n:' .. owner, n, 'r:' .. owner, r)
  stay_alive()
else
  redis.call('HDEL', LOAD, 'n:' .. owner, 'r:' .. owner)
  redis.call('ZREM', OWNERS, owner)
end
expire(LOAD)
return {'', ''}
