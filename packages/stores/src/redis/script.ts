/** The most uses of a log with costs at one time. */
const MAX_USES = 1_000_000

/**
 * The script that counts: it takes, checks or gives back all uses of a call, or none. Redis runs no other command
 * meanwhile.
 *
 * Times are microseconds of the server, which never go back: `now` of the meta key is the latest that was seen. Each
 * log is a sorted set, by time, with a member `<take>:<number in the take>:<cost>` for each use; the sum of a log whose
 * uses have costs is `<log>:used`. A missing epoch means that the server has lost its keys: nothing is counted until it
 * is set again.
 *
 * KEYS: the meta key, then each log once. ARGV: what to do; the time, or empty for the server's; the time after a loss
 * when the epoch sets itself, or empty; the name of the take; then for each use the number of its log, the limit (to
 * settle: the new cost), the window, and the cost, which is empty where the uses of the log have none. Returns `{
 * status, refused, remaining, reset, now }`, where status is 1 for allowed, 0 for refused and -1 for lost.
 */
export const SCRIPT = `
local what, take = ARGV[1], ARGV[4]
local meta = redis.call('HMGET', KEYS[1], 'epoch', 'now', 'lost')
local now = tonumber(ARGV[2])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end
now = math.max(now, tonumber(meta[2] or 0))

-- Lua writes large numbers with an exponent.
local function whole(number) return string.format('%.0f', number) end
local function costOf(member) return tonumber(string.match(member, '%d+$')) end
local function add(log, cost) return tonumber(redis.call('INCRBY', log .. ':used', whole(cost))) end
local function member(i, cost) return take .. ':' .. (i - 5) / 4 .. ':' .. cost end

-- Forgets the uses of a log with costs that have left the window. Returns what the others have used.
local function used(log, window)
  local passed, sum = redis.call('ZRANGEBYSCORE', log, '-inf', now - window), 0
  for _, each in ipairs(passed) do sum = sum + costOf(each) end
  if #passed > 0 then
    redis.call('ZREMRANGEBYSCORE', log, '-inf', now - window)
    return add(log, -sum)
  end
  return tonumber(redis.call('GET', log .. ':used') or 0)
end

-- Returns the time of the use with which so much has left, or of one before it where very many have to.
local function leaves(log, amount)
  local sum, at = 0, nil
  for place = 0, 9000, 1000 do
    local some = redis.call('ZRANGE', log, place, place + 999, 'WITHSCORES')
    for i = 1, #some, 2 do
      sum, at = sum + costOf(some[i]), tonumber(some[i + 1])
      if sum >= amount then return at end
    end
    if #some < 2000 then return nil end
  end
  return at
end

if what == 'back' or what == 'settle' then
  for i = 5, #ARGV, 4 do
    local log, cost = KEYS[tonumber(ARGV[i])], ARGV[i + 3]
    if cost == '' then
      if what == 'back' and take == '' then redis.call('ZPOPMAX', log)
      elseif what == 'back' then redis.call('ZREM', log, member(i, 1)) end
    else
      local to = what == 'back' and '0' or ARGV[i + 1]
      local score = redis.call('ZSCORE', log, member(i, cost))
      if score then
        redis.call('ZREM', log, member(i, cost))
        if to ~= '0' then redis.call('ZADD', log, score, member(i, to)) end
        add(log, tonumber(to) - tonumber(cost))
      end
    end
  end
  return {1, -1, 0, 0, now}
end

if not meta[1] then
  local lost, reopens = tonumber(meta[3] or now), tonumber(ARGV[3])
  if not reopens or now - lost < reopens or what == 'peek' then
    if what == 'take' then redis.call('HSETNX', KEYS[1], 'lost', now) end
    return {-1, 0, 0, reopens and lost + reopens - now or -1, now}
  end
  redis.call('HSET', KEYS[1], 'epoch', take)
  redis.call('HDEL', KEYS[1], 'lost')
end

local remaining, seen = math.huge, {}
for i = 5, #ARGV, 4 do
  local log, max, window = KEYS[tonumber(ARGV[i])], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
  local cost, earlier, passed = tonumber(ARGV[i + 3]), seen[log] or 0, 0
  local held
  if cost then held = used(log, window)
  else
    if what == 'peek' then passed = redis.call('ZCOUNT', log, '-inf', now - window)
    elseif earlier == 0 then redis.call('ZREMRANGEBYSCORE', log, '-inf', now - window) end
    held = redis.call('ZCARD', log) - passed
  end
  local room = max - held - earlier
  local left = room - (cost or 1)
  if left < 0 or cost and redis.call('ZCARD', log) >= ${MAX_USES} then
    local at
    if cost then at = leaves(log, math.max(-left, 1))
    else
      -- All but max - earlier - 1 of the uses must leave; this is the last of them.
      local place = held - max + earlier
      if place < held then at = redis.call('ZRANGE', log, passed + place, passed + place, 'WITHSCORES')[2] end
    end
    return {0, (i - 5) / 4, math.max(room, 0), at and tonumber(at) + window - now or window, now}
  end
  remaining = math.min(remaining, left)
  seen[log] = earlier + (cost or 1)
end
if what == 'peek' then return {1, -1, remaining, 0, now} end

for i = 5, #ARGV, 4 do
  local log, window, cost = KEYS[tonumber(ARGV[i])], tonumber(ARGV[i + 2]), ARGV[i + 3]
  if cost ~= '0' then
    redis.call('ZADD', log, now, member(i, cost == '' and 1 or cost))
    if cost ~= '' then add(log, tonumber(cost)) end
    -- By the same clock as the log, which may be ahead of the server's. A clock of a test is not the server's at all.
    if ARGV[2] == '' then
      local expiry = math.ceil((now + window) / 1000)
      redis.call('PEXPIREAT', log, expiry)
      if cost ~= '' then redis.call('PEXPIREAT', log .. ':used', expiry) end
    end
  end
end
redis.call('HSET', KEYS[1], 'now', now)
return {1, -1, remaining, 0, now}
`
