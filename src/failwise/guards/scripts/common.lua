-- What every decision begins with: the time, the figures, and the owners that are gone.
--
-- KEYS   1 load    hash: one upstream's slots and windows, shared by all credentials
--        2 owners  sorted set: process -> time at which its lease ends
--        3 queue   sorted set: ticket "owner|n" -> n, in order of arrival
--        4 key     hash: quota, circuit and cool-down of one upstream with one credential
-- ARGV   1 now     seconds; empty: the server's own time
--        2 owner   the process that asks
--        3 figures numbers in the order below, packed as doubles
-- Times are stored as text with microseconds; an empty text means "not set".

local LOAD, OWNERS, QUEUE, KEY = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local TOLERANCE, FADED = 0.001, 0.1
local now, owner = tonumber(ARGV[1]), ARGV[2]
if not now then
  local time = redis.call('TIME')
  now = time[1] + time[2] / 1000000
end

local capacity, success_gain, floor, first_share, success_share, window, parallel_share,
  parallel_floor, consecutive, chance, lone_attempts, ratio, sample, minimum, busy_sample,
  busy_seconds, open_seconds, open_limit, memory, cool_down_limit, limit, may_wait, lease, keep =
  struct.unpack('<' .. string.rep('d', 24), ARGV[3])

local function text(seconds) return string.format('%.6f', seconds) end
local function whole(value) return tonumber(value) or 0 end

local function expire(key, seconds)
  redis.call('EXPIRE', key, math.ceil(math.max(keep, seconds or 0)))
end

-- A process whose lease has ended holds no slot and waits for none.
local function bury_dead()
  for _, gone in ipairs(redis.call('ZRANGEBYSCORE', OWNERS, '-inf', '(' .. text(now))) do
    local held = redis.call('HMGET', LOAD, 'n:' .. gone, 'r:' .. gone)
    redis.call('HINCRBY', LOAD, 'in_flight', -whole(held[1]))
    redis.call('HINCRBY', LOAD, 'retrying', -whole(held[2]))
    redis.call('HDEL', LOAD, 'n:' .. gone, 'r:' .. gone)
    redis.call('ZREM', OWNERS, gone)
    local mark = gone .. '|'
    for _, ticket in ipairs(redis.call('ZRANGE', QUEUE, 0, -1)) do
      if string.sub(ticket, 1, #mark) == mark then redis.call('ZREM', QUEUE, ticket) end
    end
  end
end

local function stay_alive()
  redis.call('ZADD', OWNERS, text(now + lease), owner)
  expire(OWNERS)
end
