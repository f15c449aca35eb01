import type { StatementSync } from 'node:sqlite'
import type { CounterStore, LimitAnswer, LimitUse } from '@toolgate/core/stores'
import { numberIn, type Row } from '../rows.ts'
import type { StoresDatabase, WriteBatch } from './database.ts'

export interface SqliteCountersOptions {
  /** The most keys at one time. With more, a use of a new key is refused. Default 100,000. */
  readonly maxKeys?: number | undefined
}

/** The number of takes between deletions of expired keys. Each deletes four keys for each take. */
const SWEPT_EVERY = 8
const NOTED_EVERY_MS = 10

interface Key {
  readonly id: number
  readonly longestMs: number
  /** The number of the next use. */
  readonly next: number
}

/**
 * Returns counters that all processes of one machine share, exact across all of them.
 *
 * The cost of a use does not depend on the number of uses in its window. If there is no room for a new key, its use is
 * refused, and never allowed uncounted.
 */
export function countersIn(db: StoresDatabase, { maxKeys = 100_000 }: SqliteCountersOptions = {}): CounterStore {
  const readNow = clockIn(db)
  const uses = usesIn(db)
  const keys = keysIn(db, maxKeys)

  const batch = new TakeBatch(db, keys, uses, readNow)
  const settled = new WeakSet<LimitAnswer>()

  /** Changes the uses of a key at a time, or its last uses. */
  function change({ key: name }: LimitUse, atMs: number | undefined, by: number): void {
    const key = keys.find(name)
    const changed = key === undefined ? 0 : uses.change(key, atMs, by)
    if (key && changed !== 0) keys.change(key, changed)
  }

  return {
    peek: (asked) => db.read(() => checkUses({ keys, uses }, asked, readNow(), keys.findSince)),
    take: (asked) =>
      db.writeTogether(() => {
        const { nowMs } = batch
        batch.sweep()
        const answer = checkUses({ keys, uses }, asked, nowMs, batch.findSince)
        if (answer.allowed) for (const use of asked) batch.add(use)
        return answer
      }, batch),
    giveBack(asked, taken) {
      if (taken?.allowed === false) return
      return db.writeTogether(() => {
        // The batch is written first, because this reads the file.
        batch.settle()
        for (const use of asked) if (costOf(use) > 0) change(use, taken?.atMs, -costOf(use))
      })
    },
    settle(asked, taken, costs) {
      if (!taken.allowed || settled.has(taken)) return
      settled.add(taken)
      return db.writeTogether(() => {
        batch.settle()
        for (const [i, use] of asked.entries())
          if (use.cost !== undefined) change(use, taken.atMs, (costs[i] ?? use.cost) - use.cost)
      })
    },
  }
}

/** Checks whether the limits allow these uses now. `find` returns a key and its uses since a time. */
function checkUses(
  { keys, uses }: { readonly keys: CounterKeys; readonly uses: CounterUses },
  asked: readonly LimitUse[],
  nowMs: number,
  find: CounterKeys['findSince'],
): LimitAnswer {
  const refusedAt = (refused: number, room: number, resetMs: number): LimitAnswer => ({
    allowed: false,
    refused,
    remaining: Math.max(room, 0),
    resetMs,
    atMs: nowMs,
  })
  let remaining = Number.POSITIVE_INFINITY
  let newKeys = 0
  for (const [i, use] of asked.entries()) {
    const key = find(use.key, nowMs - use.windowMs)
    const earlier = i === 0 ? 0 : costBefore(asked, i)
    const cost = costOf(use)
    if (!key && earlier === 0 && !keys.hasRoomFor(++newKeys, nowMs))
      return refusedAt(i, 0, Math.min(keys.nextPassesAt(nowMs) - nowMs, use.windowMs))
    const room = use.max - (key?.held ?? 0) - earlier
    if (room < cost) {
      // The last of the uses that must expire before the cost fits.
      const atMs = key && uses.timeOf(key, key.next - key.held + cost - room - 1)
      return refusedAt(i, room, atMs === undefined ? use.windowMs : atMs + use.windowMs - nowMs)
    }
    remaining = Math.min(remaining, room - cost)
  }
  return { allowed: true, refused: -1, remaining, resetMs: 0, atMs: nowMs }
}

/** Returns a function that returns the time. The time never goes back, even between processes. */
function clockIn(db: StoresDatabase): () => number {
  const selectMachine = db.prepare('SELECT monotonic_ms FROM machine')
  return () => Math.max(Number(selectMachine.get()?.['monotonic_ms']), db.clock.monotonicMs())
}

type FoundKey = Key & { readonly held: number }

/** A key within one transaction. */
interface CountedKey {
  readonly afterMs: number
  found: FoundKey | undefined
  /** The number of uses that its row does not include yet. `undefined` if its row was not written. */
  unwritten: number | undefined
}

/** The number of uses of a key between deletions of its expired uses. Each deletes up to twice as many. */
const USES_SWEPT_EVERY = 32

/**
 * The takes of one transaction. They share one time. The row of a key is read and written once for all of them, because
 * no other process can write meanwhile.
 */
class TakeBatch implements WriteBatch {
  nowMs = 0
  readonly #db: StoresDatabase
  readonly #keys: CounterKeys
  readonly #uses: CounterUses
  readonly #readNow: () => number
  readonly #updateMachine: StatementSync
  readonly #counted = new Map<string, CountedKey>()
  #takes = 0
  /** The last stored time. It carries the times of this boot over to the next. */
  #notedMs = Number.NaN

  constructor(db: StoresDatabase, keys: CounterKeys, uses: CounterUses, readNow: () => number) {
    this.#db = db
    this.#keys = keys
    this.#uses = uses
    this.#readNow = readNow
    this.#updateMachine = db.prepare('UPDATE machine SET monotonic_ms = ?, wall_ms = ?')
  }

  begin(): void {
    this.#counted.clear()
    this.nowMs = this.#readNow()
  }

  end(): void {
    this.settle()
    if (Math.abs(this.nowMs - this.#notedMs) < NOTED_EVERY_MS) return
    this.#updateMachine.run(this.nowMs, this.#db.clock.wallMs())
    this.#notedMs = this.nowMs
  }

  /** Writes the pending counts, so that the file can be read. */
  settle(): void {
    for (const { found, unwritten } of this.#counted.values())
      if (found && unwritten !== undefined && unwritten > 0) this.#keys.count(found, unwritten)
    this.#counted.clear()
  }

  /** Deletes expired keys every few takes. */
  sweep(): void {
    if (this.#takes++ % SWEPT_EVERY !== 0) return
    for (const [name, { unwritten }] of this.#counted) if (unwritten === undefined) this.#counted.delete(name)
    this.#keys.removePassed(this.nowMs)
  }

  readonly findSince = (name: string, afterMs: number): FoundKey | undefined => this.#find(name, afterMs).found

  add(use: LimitUse): void {
    const cost = costOf(use)
    if (cost === 0) return
    let counted = this.#find(use.key, this.nowMs - use.windowMs)
    if (counted.found && counted.found.next + cost > Number.MAX_SAFE_INTEGER)
      counted = this.#renumber(use, counted.found)
    const { found, unwritten } = counted
    const isWritten = found === undefined || unwritten === undefined
    const before = isWritten ? this.#keys.grow(use, cost, this.nowMs) : found
    counted.unwritten = isWritten ? 0 : unwritten + cost
    counted.found = { ...before, next: before.next + cost, held: (found?.held ?? 0) + cost }
    // All takes of a batch have one time, and share a row: sixteen takes at once cost 4 µs each, instead of 6 with rows
    // of their own.
    if (isWritten) this.#uses.add(before, this.nowMs)
    if (before.next % USES_SWEPT_EVERY < cost) this.#uses.removePassed(before, this.nowMs, 2 * USES_SWEPT_EVERY)
  }

  /** Renumbers the uses of a key before their numbers lose precision. */
  #renumber(use: LimitUse, found: FoundKey): CountedKey {
    this.settle()
    this.#keys.change(found, -(found.next - found.held))
    this.#uses.renumber(found, found.next - found.held)
    return this.#find(use.key, this.nowMs - use.windowMs)
  }

  #find(name: string, afterMs: number): CountedKey {
    let counted = this.#counted.get(name)
    if (counted?.afterMs === afterMs) return counted
    // Two rules may have one key and two windows.
    if (counted) this.settle()
    counted = { afterMs, found: this.#keys.findSince(name, afterMs), unwritten: undefined }
    this.#counted.set(name, counted)
    return counted
  }
}

/** Returns the sum of the costs of earlier uses with the same key. */
function costBefore(uses: readonly LimitUse[], end: number): number {
  let sum = 0
  for (let i = 0; i < end; i++) if (uses[i]?.key === uses[end]?.key) sum += costOf(uses[i])
  return sum
}

function costOf(use: LimitUse | undefined): number {
  return use?.cost ?? 1
}

interface CounterKeys {
  find(name: string): Key | undefined
  /** Finds a key, with its uses after a time. */
  findSince(name: string, afterMs: number): FoundKey | undefined
  hasRoomFor(count: number, nowMs: number): boolean
  /** Returns the time when the next key can be deleted. */
  nextPassesAt(nowMs: number): number
  /** Adds a use to a key, and creates the key if it does not exist. Returns the earlier key. */
  grow(use: LimitUse, cost: number, nowMs: number): Key
  /** Adds to the number of a key's next use. */
  count(key: Key, added: number): void
  /** Changes the number of a key's next use. A key without uses is deleted. */
  change(key: Key, by: number): void
  /** Deletes a few keys whose windows have ended, or many if there is little room. */
  removePassed(nowMs: number): void
}

function keysIn(db: StoresDatabase, maxKeys: number): CounterKeys {
  const select = db.prepare('SELECT id, longest_ms, next FROM counter_keys WHERE key = ?')
  const selectSince = db.prepare(
    'SELECT id, longest_ms, next, (SELECT number FROM counter_uses WHERE key_id = counter_keys.id AND at_ms > ?2 ' +
      'ORDER BY at_ms, number LIMIT 1) AS first FROM counter_keys WHERE key = ?1',
  )
  const selectCount = db.prepare('SELECT counter_keys AS count FROM machine')
  const addToCount = db.prepare('UPDATE machine SET counter_keys = counter_keys + ?')
  const selectNext = db.prepare('SELECT min(passes_at) AS at FROM counter_keys WHERE passes_at > ?')
  const selectPassedCount = db.prepare('SELECT count(*) AS count FROM counter_keys WHERE passes_at <= ?')
  const upsert = db.prepare(
    'INSERT INTO counter_keys (key, longest_ms, next, passes_at) VALUES (?1, ?2, ?4, ?3 + ?2) ' +
      'ON CONFLICT (key) DO UPDATE SET next = next + ?4, longest_ms = max(longest_ms, ?2), ' +
      'passes_at = max(passes_at, ?3 + 1.125 * max(longest_ms, ?2)) RETURNING id, longest_ms, next - ?4 AS next',
  )
  // Most uses of a key leave its expiry unchanged, which saves writing one page of the expiry index.
  const countOn = db.prepare(
    'UPDATE counter_keys SET next = next + ?4 WHERE key = ?1 AND longest_ms >= ?2 AND passes_at >= ?3 + longest_ms ' +
      'RETURNING id, longest_ms, next - ?4 AS next',
  )
  const countMore = db.prepare('UPDATE counter_keys SET next = next + ? WHERE id = ?')
  const hasUses = db.prepare('SELECT 1 FROM counter_uses WHERE key_id = ? LIMIT 1')
  const remove = db.prepare('DELETE FROM counter_keys WHERE id = ?')
  const selectPassed = db.prepare('SELECT id FROM counter_keys WHERE passes_at <= ? ORDER BY passes_at LIMIT ?')
  const removeUses = db.prepare(
    'DELETE FROM counter_uses WHERE key_id = ?1 AND number IN ' +
      '(SELECT number FROM counter_uses WHERE key_id = ?1 ORDER BY number LIMIT 1000)',
  )
  const forget = (id: number): void => {
    remove.run(id)
    addToCount.run(-1)
  }
  const count = (): number => Number(selectCount.get()?.['count'])

  return {
    find(name) {
      const row = select.get(toBytes(name))
      return row && toKey(row)
    },
    findSince(name, afterMs) {
      const row = selectSince.get(toBytes(name), afterMs)
      if (!row) return undefined
      const key = toKey(row)
      return { ...key, held: row['first'] === null ? 0 : key.next - Number(row['first']) }
    },
    hasRoomFor(added, nowMs) {
      const room = maxKeys - count() - added
      // Expired keys that still exist take no room, because `peek` deletes none.
      return room >= 0 || room + Number(selectPassedCount.get(nowMs)?.['count']) >= 0
    },
    nextPassesAt: (nowMs) => Number(selectNext.get(nowMs)?.['at'] ?? Number.POSITIVE_INFINITY),
    grow({ key, windowMs }, cost, nowMs) {
      const name = toBytes(key)
      const grown = toKey(countOn.get(name, windowMs, nowMs, cost) ?? upsert.get(name, windowMs, nowMs, cost) ?? {})
      if (grown.next === 0) addToCount.run(1)
      return grown
    },
    count({ id }, added) {
      countMore.run(added, id)
    },
    change({ id }, by) {
      countMore.run(by, id)
      if (!hasUses.get(id)) forget(id)
    },
    removePassed(nowMs) {
      // One take adds a key or two, so expired keys are deleted as fast as new ones are added.
      const most = count() >= maxKeys * 0.9 ? 1000 : 4 * SWEPT_EVERY
      for (const row of selectPassed.all(nowMs, most)) {
        const id = numberIn(row, 'id')
        removeUses.run(id)
        if (!hasUses.get(id)) forget(id)
      }
    },
  }
}

/** The stored uses of keys. A row has the uses from its number up to that of the next row, all at one time. */
interface CounterUses {
  timeOf(key: Key, number: number): number | undefined
  /** Adds the next use of a key, and the following uses at the same time. */
  add(key: Key, atMs: number): void
  /** Deletes the oldest uses of a key that are in no window, up to `most`. */
  removePassed(key: Key, nowMs: number, most: number): void
  /** Changes the uses at a time, or else the last uses, by no more than is still stored. Returns the actual change. */
  change(key: Key, atMs: number | undefined, by: number): number
  /** Subtracts a number from each number of a key. Earlier uses are not kept. */
  renumber(key: Key, by: number): void
}

function usesIn(db: StoresDatabase): CounterUses {
  const selectTime = db.prepare(
    'SELECT at_ms FROM counter_uses WHERE key_id = ? AND number <= ? ORDER BY number DESC LIMIT 1',
  )
  const insert = db.prepare('INSERT INTO counter_uses (key_id, number, at_ms) VALUES (?, ?, ?)')
  const selectOfTime = db.prepare(
    'SELECT number FROM counter_uses WHERE key_id = ? AND at_ms = ? ORDER BY number DESC LIMIT 1',
  )
  const selectLatest = db.prepare('SELECT number FROM counter_uses WHERE key_id = ? ORDER BY number DESC LIMIT 1')
  const selectAfter = db.prepare(
    'SELECT number FROM counter_uses WHERE key_id = ? AND number > ? ORDER BY number LIMIT 1',
  )
  const remove = db.prepare('DELETE FROM counter_uses WHERE key_id = ? AND number = ?')
  const removePassed = db.prepare(
    'DELETE FROM counter_uses WHERE key_id = ?1 AND number IN ' +
      '(SELECT number FROM counter_uses WHERE key_id = ?1 AND at_ms <= ?2 ORDER BY at_ms LIMIT ?3)',
  )
  const removeBefore = db.prepare('DELETE FROM counter_uses WHERE key_id = ? AND number < ?')
  // This takes two steps, because no number may exist twice at any moment.
  const moveAside = db.prepare('UPDATE counter_uses SET number = -number WHERE key_id = ? AND number > ?')
  const moveBack = db.prepare('UPDATE counter_uses SET number = ?2 - number WHERE key_id = ?1 AND number < 0')

  return {
    timeOf(key, number) {
      // The next number belongs to a use that this take would add.
      const row = number < key.next ? selectTime.get(key.id, number) : undefined
      return row && Number(row['at_ms'])
    },
    add({ id, next }, atMs) {
      insert.run(id, next, atMs)
    },
    removePassed({ id, longestMs }, nowMs, most) {
      removePassed.run(id, nowMs - longestMs, most)
    },
    change({ id, next }, atMs, by) {
      let left = by
      while (left !== 0) {
        const row = atMs === undefined ? selectLatest.get(id) : selectOfTime.get(id, atMs)
        if (!row) break
        const number = numberIn(row, 'number')
        const size = Number(selectAfter.get(id, number)?.['number'] ?? next + by - left) - number
        const change = Math.max(left, -size)
        if (change === -size) remove.run(id, number)
        moveAside.run(id, number)
        moveBack.run(id, change)
        left -= change
      }
      return by - left
    },
    renumber({ id }, by) {
      removeBefore.run(id, by)
      moveAside.run(id, by - 1)
      moveBack.run(id, -by)
    },
  }
}

function toKey(row: Row): Key {
  return { id: numberIn(row, 'id'), longestMs: numberIn(row, 'longest_ms'), next: numberIn(row, 'next') }
}

/** Returns a name as UTF-16, which differs for all texts. UTF-8 cannot encode a lone surrogate. */
function toBytes(name: string): Buffer {
  return Buffer.from(name, 'utf16le')
}
