-- Leave to send. ARGV 4 attempt, 5 cost in quota, 6 "1": counts against the shares of retries,
-- 7 the ticket with which this caller waits already, or empty.
-- Answers {"go", probe}, {"wait", ticket}, or {code, seconds, reason}.

local attempt, cost, transient, ticket = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6] == '1', ARGV[7]
bury_dead()

local load = redis.call('HMGET', LOAD, 'in_flight', 'retrying', 'turn', 'first', 'first_before',
  'good', 'good_before', 'retries', 'retries_before', 'row', 'calls', 'n:' .. owner, 'r:' .. owner)
local in_flight, retrying, turn = whole(load[1]), whole(load[2]), tonumber(load[3])
local first, first_before = whole(load[4]), whole(load[5])
local good, good_before = whole(load[6]), whole(load[7])
local retries, retries_before = whole(load[8]), whole(load[9])

local half = window / 2
if not turn or now >= turn then
  local quiet = not turn or now >= turn + half
  first_before, good_before, retries_before = first, good, retries
  if quiet then first_before, good_before, retries_before = 0, 0, 0 end
  first, good, retries, turn = 0, 0, 0, now + half
  redis.call('HSET', LOAD, 'turn', text(turn), 'first', 0, 'good', 0, 'retries', 0,
    'first_before', first_before, 'good_before', good_before, 'retries_before', retries_before)
  expire(LOAD)
end

local key = redis.call('HMGET', KEY, 'quota', 'held_until', 'open_until', 'probe', 'probe_began',
  'openings')
local quota = tonumber(key[1]) or capacity
local open_until = tonumber(key[3])

local function leave_queue()
  if ticket ~= '' then redis.call('ZREM', QUEUE, ticket) end
end

local function refuse(code, seconds, reason)
  leave_queue()
  return {code, seconds and text(seconds) or '', reason}
end

local held = tonumber(key[2])
if held and held - now > TOLERANCE then
  return refuse('runtime.cool_down', held - now,
    string.format('the upstream told all callers to wait %.1f s', held - now))
end
if open_until then
  local under_way = key[4] and key[4] ~= ''
  local wait = (under_way and tonumber(key[5]) + open_seconds or open_until) - now
  if wait > TOLERANCE then
    return refuse('runtime.circuit_open', wait, string.format(
      'circuit %s, opened %d times in sequence; a probe may go in %.1f s',
      under_way and 'half-open' or 'open', whole(key[6]), wait))
  end
end

-- A slot, in order of arrival. A ticket that was buried with its lease queues again at the end.
local ahead = ticket ~= '' and redis.call('ZRANK', QUEUE, ticket) or nil
if not ahead then ahead, ticket = redis.call('ZCARD', QUEUE), '' end
if limit >= 0 and (in_flight + ahead >= limit) then
  if ticket == '' then
    if ahead >= may_wait then
      return refuse('runtime.concurrency', nil,
        string.format('%d requests under way, %d callers waiting', in_flight, ahead))
    end
    local number = redis.call('HINCRBY', LOAD, 'tickets', 1)
    ticket = owner .. '|' .. string.format('%d', number)
    redis.call('ZADD', QUEUE, number, ticket)
  end
  expire(QUEUE)
  stay_alive()
  return {'wait', ticket}
end

if attempt > 1 then
  if transient then
    retrying = math.max(0, math.min(retrying, in_flight))
    if retrying >= math.max(parallel_floor, parallel_share * in_flight) then
      return refuse('runtime.retry_budget', turn - now,
        string.format('%d retries are under way among %d requests', retrying, in_flight))
    end
    local share = first_share * (first + first_before) + success_share * (good + good_before)
    local out = whole(load[10]) >= consecutive and whole(load[11]) >= 2
    if retries + retries_before + 1 > (out and share or math.max(floor, share)) then
      return refuse('runtime.retry_budget', turn - now,
        string.format('%d retries for %d calls, %d of them good, in %g s',
          retries + retries_before, first + first_before, good + good_before, window))
    end
  end
  if cost > quota then
    return refuse('runtime.retry_budget', turn - now,
      string.format('%d left of the quota, a retry costs %d', quota, cost))
  end
end

leave_queue()
local mine = tonumber(load[12])
if attempt > 1 then
  if cost > 0 then
    redis.call('HSET', KEY, 'quota', quota - cost)
    expire(KEY, held and held - now + memory)
  end
  if transient then
    redis.call('HSET', LOAD, 'retries', retries + 1, 'retrying', retrying + 1,
      'r:' .. owner, whole(load[13]) + 1)
  end
else
  first = first + 1
end
redis.call('HSET', LOAD, 'in_flight', in_flight + 1, 'n:' .. owner, (mine or 0) + 1, 'first', first)
-- Who holds something already has a lease, and renews it by beats.
if not mine then stay_alive() end
local probe = ''
if open_until then
  probe = string.format('%d', redis.call('HINCRBY', KEY, 'probes', 1))
  redis.call('HSET', KEY, 'probe', probe, 'probe_began', text(now))
  expire(KEY, open_limit + memory)
end
return {'go', probe}
