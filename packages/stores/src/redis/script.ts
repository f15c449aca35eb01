/**
 * The one script that counts: it takes, looks or gives back, for all uses of a call or for none. Redis runs it alone, so nothing
 * comes between.
 *
 * Times are microseconds of the server, which never go back: `now` of the meta key is the latest that was seen. Each log is a
 * sorted set with a member for each use, `<take>:<its number in the take>:<weight>`, by its time. A missing epoch means that the
 * server has lost its keys: nothing is counted until it is set again.
 *
 * KEYS: the meta key, then each log once. ARGV: what to do; the time, or empty for the server's; how long after a loss the epoch
 * sets itself, or empty; the name of the take; then for each use the number of its log, the limit and the window.
 * Returns `{ status, refused, remaining, reset, now }`, where status is 1 for allowed, 0 for refused and -1 for lost.
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

if what == 'back' then
  for i = 5, #ARGV, 3 do
    local log = KEYS[tonumber(ARGV[i])]
    if take == '' then redis.call('ZPOPMAX', log)
    else redis.call('ZREM', log, take .. ':' .. (i - 5) / 3 .. ':1') end
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
for i = 5, #ARGV, 3 do
  local log, max, window = KEYS[tonumber(ARGV[i])], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
  local earlier, passed = seen[log] or 0, 0
  if what == 'peek' then passed = redis.call('ZCOUNT', log, '-inf', now - window)
  elseif earlier == 0 then redis.call('ZREMRANGEBYSCORE', log, '-inf', now - window) end
  local held = redis.call('ZCARD', log) - passed
  local left = max - held - earlier - 1
  if left < 0 then
    -- All but max - earlier - 1 of the uses must leave; this is the last of them.
    local place, reset = held - max + earlier, window
    if place < held then
      local last = redis.call('ZRANGE', log, passed + place, passed + place, 'WITHSCORES')
      reset = tonumber(last[2]) + window - now
    end
    return {0, (i - 5) / 3, 0, reset, now}
  end
  remaining = math.min(remaining, left)
  seen[log] = earlier + 1
end
if what == 'peek' then return {1, -1, remaining, 0, now} end

for i = 5, #ARGV, 3 do
  local log, window = KEYS[tonumber(ARGV[i])], tonumber(ARGV[i + 2])
  redis.call('ZADD', log, now, take .. ':' .. (i - 5) / 3 .. ':1')
  -- By the same clock as the log, which may be ahead of the server's. A clock of a test is not the server's at all.
  if ARGV[2] == '' then redis.call('PEXPIREAT', log, math.ceil((now + window) / 1000)) end
end
redis.call('HSET', KEYS[1], 'now', now)
return {1, -1, remaining, 0, now}
`
