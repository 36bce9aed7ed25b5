-- A request has ended. ARGV 4 attempt, 5 what its end tells ("good", "ill", "sound", "silent", or
-- "unsent": nothing was sent), 6 "1": it held a slot here, 7 what it paid, 8 "1": it counted against
-- the shares of retries, 9 its probe or empty, 10 seconds that the upstream told all callers to wait.
-- Answers {seconds of cool-down left, seconds until a probe may go}, empty where there is none.

local attempt, meaning, slot = tonumber(ARGV[4]), ARGV[5], ARGV[6] == '1'
local paid, transient, probe, told = tonumber(ARGV[7]), ARGV[8] == '1', ARGV[9], tonumber(ARGV[10])

local load = redis.call('HMGET', LOAD, 'in_flight', 'retrying', 'n:' .. owner, 'r:' .. owner, 'row',
  'calls', 'first', 'retries')
if slot and whole(load[3]) > 0 then
  local left = whole(load[3]) - 1
  redis.call('HSET', LOAD, 'in_flight', math.max(0, whole(load[1]) - 1), 'n:' .. owner, left)
  if transient and whole(load[4]) > 0 then
    redis.call('HSET', LOAD, 'retrying', math.max(0, whole(load[2]) - 1), 'r:' .. owner,
      whole(load[4]) - 1)
  end
end

local key = redis.call('HMGET', KEY, 'quota', 'held_until', 'open_until', 'probe', 'openings',
  'closed_at', 'heard', 'run', 'firsts', 'needed', 'count', 'began', 'weight', 'ill')
local quota = tonumber(key[1]) or capacity
local held_until, open_until = tonumber(key[2]), tonumber(key[3])
local openings, heard = whole(key[5]), tonumber(key[7])
local run, firsts, needed = whole(key[8]), whole(key[9]), whole(key[10])
local count, began, weight, ill = whole(key[11]), whole(key[12]), whole(key[13]), whole(key[14])
local mine = probe ~= '' and probe == key[4]
local clean = run == 0 and count >= busy_sample and ill == 0

local function give_back(amount)
  if quota < capacity and amount > 0 then
    redis.call('HSET', KEY, 'quota', math.min(capacity, quota + amount))
  end
end

local function forget_probe()
  if mine then redis.call('HSET', KEY, 'probe', '') end
end

local function close()
  open_until = nil
  redis.call('HSET', KEY, 'open_until', '', 'probe', '', 'closed_at', text(now), 'run', 0,
    'firsts', 0, 'count', 0, 'weight', 0, 'ill', 0)
end

local function open()
  openings = openings + 1
  open_until = now + math.min(open_seconds * openings, open_limit)
  redis.call('HSET', KEY, 'open_until', text(open_until), 'probe', '', 'openings', openings)
end

-- After a long silence the old outcomes say nothing about today.
local function listen()
  if heard and now - heard > memory and not clean then
    run, firsts, count, weight, ill = 0, 0, 0, 0, 0
  end
end

-- Each outcome counts 1 and fades with the next: see breaker.py for what is judged by them.
local function note(outcome)
  local fade = count > 0 and math.exp((heard - now) / busy_seconds) or 0
  fade = math.min(math.max(fade, 1 - 1 / sample), 1 - 1 / math.max(sample, busy_sample))
  weight, ill = weight * fade + 1, ill * fade + outcome
  if count == 0 then began = now end
  count = count + 1
  if outcome == 0 and ill < FADED and count >= busy_sample then ill = 0 end
  redis.call('HSET', KEY, 'heard', text(now), 'run', run, 'firsts', firsts, 'needed', needed,
    'count', count, 'began', text(began), 'weight', text(weight), 'ill', text(ill))
end

local function more_than_chance()
  local usual = ill / (weight + minimum)
  if usual == 0 then return consecutive end
  return math.max(consecutive, math.ceil(math.log(chance) / math.log(usual)))
end

if meaning == 'unsent' then
  if attempt > 1 then
    give_back(paid)
    if transient then redis.call('HSET', LOAD, 'retries', math.max(0, whole(load[8]) - 1)) end
  elseif slot then
    redis.call('HSET', LOAD, 'first', math.max(0, whole(load[7]) - 1))
  end
  forget_probe()
elseif meaning == 'good' then
  redis.call('HINCRBY', LOAD, 'good', 1)
  if whole(load[5]) > 0 then redis.call('HSET', LOAD, 'row', 0) end
  give_back(attempt > 1 and paid or success_gain)
  if open_until then
    if mine then close() end
  elseif not clean then
    listen()
    run, firsts = 0, 0
    note(0)
  end
elseif meaning == 'ill' then
  local calls = whole(load[5]) > 0 and whole(load[6]) or 0
  if attempt <= 1 then calls = calls + 1 end
  redis.call('HSET', LOAD, 'row', whole(load[5]) + 1, 'calls', calls)
  if open_until then
    if mine then open() end
  else
    listen()
    if run == 0 or needed == 0 then needed = more_than_chance() end
    run = run + 1
    if attempt <= 1 then firsts = firsts + 1 end
    note(1)
    local in_a_row = run >= needed and (firsts >= 2 or run >= lone_attempts)
    local full = count >= minimum and (count >= busy_sample or now - began >= busy_seconds)
    if in_a_row or (full and ill / weight >= ratio) then
      local closed_at = tonumber(key[6])
      if closed_at and now - closed_at > open_limit then openings = 0 end
      open()
    end
  end
elseif meaning == 'sound' then
  if whole(load[5]) > 0 then redis.call('HSET', LOAD, 'row', 0) end
  if open_until and mine then close() end
else
  forget_probe()
end

if told > 0 then
  held_until = math.max(held_until or 0, now + math.min(told, cool_down_limit))
  redis.call('HSET', KEY, 'held_until', text(held_until))
end

local held = held_until and held_until - now or 0
local wait = open_until and open_until - now or 0
expire(LOAD)
expire(KEY, math.max(held, wait) + memory)
return {held > 0 and text(held) or '', wait > 0 and text(wait) or ''}
