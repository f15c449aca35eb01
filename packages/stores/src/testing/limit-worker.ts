import { openPostgresStores } from '../postgres.ts'
import { openRedisCounters } from '../redis.ts'

/**
 * Runs a process that takes from one limit beside others: `limit-worker.ts <engine> <url> <max> <tries>`. It prints the
 * number of its allowed takes.
 */
const [engine, url = '', max, tries] = process.argv.slice(2)
/** The number of takes that wait for answers at once. */
const AT_ONCE = 256

async function open() {
  if (engine === 'redis') return openRedisCounters({ url, silenceMs: 60_000 })
  const { counters, close } = await openPostgresStores({
    url,
    maxConnections: 4,
    statementTimeoutMs: 60_000,
    // The count is as exact, and several times as fast.
    counters: { survives: 'process' },
  })
  return { ...counters, close }
}

const counters = await open()
const uses = [{ key: 'shared', max: Number(max), windowMs: 86_400_000 }]
let left = Number(tries)
let allowed = 0

async function takeOn(): Promise<void> {
  while (left-- > 0) if ((await counters.take(uses)).allowed) allowed++
}

await Promise.all(Array.from({ length: engine === 'redis' ? AT_ONCE : 8 }, takeOn))
await counters.close()
console.log(allowed)
