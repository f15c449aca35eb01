import { hash, randomBytes } from 'node:crypto'
import type { Clock, CounterStore, LimitAnswer, LimitUse } from '@toolgate/core/stores'
import { numberIn } from '../rows.ts'
import { type PostgresDatabase, statement } from './database.ts'

export interface PostgresCountersOptions {
  /**
   * `disk`: counted uses survive a crash of the server. `process`: such a crash may lose the last second, but takes of
   * one key are many times faster, because they do not wait for the disk. Default `disk`.
   */
  readonly survives?: 'disk' | 'process' | undefined
}

/**
 * Returns counters that all replicas share, exact over all of them, by the server's clock.
 *
 * A take locks its keys in one order, so takes of one key run one after another, and each waits for the disk.
 */
export function countersIn(
  db: PostgresDatabase,
  clock: Clock | undefined,
  { survives = 'disk' }: PostgresCountersOptions = {},
): CounterStore {
  const count = statement(`SELECT * FROM ${db.schema}.count_limits($1, $2, $3, $4, $5, $6, $7, $8, $9)`)
  const giveBack = statement(`SELECT ${db.schema}.give_back_limits($1, $2, $3, $4)`)
  const settle = statement(`SELECT ${db.schema}.settle_limits($1, $2, $3, $4, $5)`)
  const process = randomBytes(8).toString('base64url')
  let takes = 0

  async function ask(isTake: boolean, uses: readonly LimitUse[]): Promise<LimitAnswer> {
    if (uses.length === 0) return { allowed: true, refused: -1, remaining: Number.POSITIVE_INFINITY, resetMs: 0 }
    const { keys, windows, places } = sortKeys(uses)
    const take = process + (takes++).toString(36)
    const maxes = uses.map(({ max }) => max)
    const costs = uses.map(costOf)
    const now = clock?.monotonicMs() ?? null
    const values = [isTake, now, take, keys, windows, places, maxes, costs, survives === 'disk']
    const [row = {}] = await db.query(count, values)
    return {
      allowed: row['allowed'] === true,
      refused: numberIn(row, 'refused'),
      remaining: numberIn(row, 'remaining'),
      resetMs: numberIn(row, 'reset_ms'),
      atMs: numberIn(row, 'at_ms'),
      take,
    }
  }

  return {
    peek: (uses) => ask(false, uses),
    take: (uses) => ask(true, uses),
    async giveBack(uses, taken) {
      if (taken?.allowed === false || uses.length === 0) return
      const { keys, places } = sortKeys(uses)
      const counts = keys.map((_, i) => places.filter((place, j) => place === i + 1 && uses[j]?.cost !== 0).length)
      await db.query(giveBack, [taken?.atMs ?? null, taken?.take ?? null, keys, counts])
    },
    async settle(uses, { allowed, atMs, take }, costs) {
      if (!allowed || uses.length === 0) return
      const { keys, places } = sortKeys(uses)
      const sums = (each: readonly number[]) => keys.map((_, i) => sum(each.filter((_cost, j) => places[j] === i + 1)))
      const to = uses.map((use, i) => (use.cost === undefined ? 1 : (costs[i] ?? use.cost)))
      await db.query(settle, [atMs, take, keys, sums(uses.map(costOf)), sums(to)])
    },
  }
}

/**
 * Returns each key once, in an order that all replicas share, and for each use the number of its key, counted from 1.
 */
function sortKeys(uses: readonly LimitUse[]) {
  const named = uses.map((use) => ({ digest: digestOf(use), windowMs: use.windowMs }))
  const byDigest = new Map(named.map((each) => [each.digest.toString('latin1'), each]))
  const sorted = [...byDigest.entries()].toSorted(([a], [b]) => (a < b ? -1 : 1))
  const names = sorted.map(([name]) => name)
  return {
    keys: sorted.map(([, { digest }]) => digest),
    windows: sorted.map(([, { windowMs }]) => windowMs),
    places: named.map(({ digest }) => names.indexOf(digest.toString('latin1')) + 1),
  }
}

function digestOf({ key, windowMs }: LimitUse): Buffer {
  // UTF-16 differs for all texts. UTF-8 cannot encode a lone surrogate.
  return hash('sha256', Buffer.from(`${windowMs}|${key}`, 'utf16le'), 'buffer').subarray(0, 16)
}

function costOf({ cost = 1 }: LimitUse): number {
  return cost
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0)
}
