import type { StatementSync } from 'node:sqlite'
import type { CounterStore, LimitAnswer, LimitUse } from '@toolgate/core/stores'
import { numberIn, type Row } from '../rows.ts'
import type { StoresDatabase, WriteBatch } from './database.ts'

export interface SqliteCountersOptions {
  /** The most keys at one time. With more, a use of a new key is refused. Default 100,000. */
  readonly maxKeys?: number | undefined
}

/** Expired keys are deleted at every eighth take, four for each take. */
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
 * A use costs the same for every number of uses in its window. If there is no room for a new key, its use is refused, never
 * allowed uncounted.
 */
export function countersIn(db: StoresDatabase, { maxKeys = 100_000 }: SqliteCountersOptions = {}): CounterStore {
  const readNow = clockIn(db)
  const uses = usesIn(db)
  const keys = keysIn(db, maxKeys)

  const batch = new TakeBatch(db, keys, uses, readNow)
  const settled = new WeakSet<LimitAnswer>()

  /** Changes what was used at a time, or last. */
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
        // It reads the file.
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

/** Checks whether uses would be allowed now. `find` returns a key with what was used after a time. */
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
    const earlier = costBefore(asked, i)
    const cost = costOf(use)
    if (!key && earlier === 0 && !keys.hasRoomFor(++newKeys, nowMs))
      return refusedAt(i, 0, Math.min(keys.nextPassesAt(nowMs) - nowMs, use.windowMs))
    const room = use.max - (key?.held ?? 0) - earlier
    if (room < cost) {
      // So much must expire that the cost has room; this is the last of it.
      const atMs = key && uses.timeOf(key, key.next - key.held + cost - room - 1)
      return refusedAt(i, room, atMs === undefined ? use.windowMs : atMs + use.windowMs - nowMs)
    }
    remaining = Math.min(remaining, room - cost)
  }
  return { allowed: true, refused: -1, remaining, resetMs: 0, atMs: nowMs }
}

/** Returns the function that returns the time, which never goes back, not even between processes. */
function clockIn(db: StoresDatabase): () => number {
  const selectMachine = db.prepare('SELECT monotonic_ms FROM machine')
  return () => Math.max(Number(selectMachine.get()?.['monotonic_ms']), db.clock.monotonicMs())
}

type FoundKey = Key & { readonly held: number }

/** A key within one transaction. */
interface CountedKey {
  readonly afterMs: number
  found: FoundKey | undefined
  /** What its row does not count yet; `undefined` if its row was not written. */
  unwritten: number | undefined
}

/** Expired uses of a key are deleted at each use whose number is a multiple of this, twice as many. */
const USES_SWEPT_EVERY = 32

/**
 * The takes of one transaction. They have one time, and the row of a key is read and written once for all of them: nobody
 * else can write meanwhile.
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
  /** The time that was stored last. It carries the times of this boot over to the next. */
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

  /** Writes what is counted, so that the file can be read. */
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
    const counted = this.#roomToCount(use, cost)
    const { found, unwritten } = counted
    const isWritten = found === undefined || unwritten === undefined
    const before = isWritten ? this.#keys.grow(use, cost, this.nowMs) : found
    counted.unwritten = isWritten ? 0 : unwritten + cost
    counted.found = { ...before, next: before.next + cost, held: (found?.held ?? 0) + cost }
    // All takes of a batch have one time, and one row has the uses of one time: sixteen takes that come together cost 4 µs
    // each, where with rows of their own they cost 6.
    if (isWritten) this.#uses.add(before, this.nowMs)
    if (before.next % USES_SWEPT_EVERY < cost) this.#uses.removePassed(before, this.nowMs, 2 * USES_SWEPT_EVERY)
  }

  /** Numbers begin again before they are no longer exact. */
  #roomToCount(use: LimitUse, cost: number): CountedKey {
    const counted = this.#find(use.key, this.nowMs - use.windowMs)
    const { found } = counted
    if (!found || found.next + cost <= Number.MAX_SAFE_INTEGER) return counted
    this.settle()
    this.#keys.change(found, -(found.next - found.held))
    this.#uses.renumber(found, found.next - found.held)
    return this.#find(use.key, this.nowMs - use.windowMs)
  }

  #find(name: string, afterMs: number): CountedKey {
    let counted = this.#counted.get(name)
    if (counted?.afterMs === afterMs) return counted
    // Two rules with one key and two windows.
    if (counted) this.settle()
    counted = { afterMs, found: this.#keys.findSince(name, afterMs), unwritten: undefined }
    this.#counted.set(name, counted)
    return counted
  }
}

/** Adds up the costs of the uses of the same key before one of them. */
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
  /** Finds a key, with what was used after a time. */
  findSince(name: string, afterMs: number): FoundKey | undefined
  hasRoomFor(count: number, nowMs: number): boolean
  /** Returns the time when the next key can be deleted. */
  nextPassesAt(nowMs: number): number
  /** Adds a use to a key, which is made if it does not exist. Returns it as it was before. */
  grow(use: LimitUse, cost: number, nowMs: number): Key
  /** Adds to the number of a key's next use. */
  count(key: Key, added: number): void
  /** Changes the number of a key's next use. A key without uses is deleted. */
  change(key: Key, by: number): void
  /** Deletes a few keys whose windows are over; many if there is little room. */
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
  // Most uses of a key leave alone when it passes: one page less to write, of the index by that time.
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
      // Expired keys that still exist take no room: `peek` deletes none.
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
      // One take adds a key or two, so expired ones are deleted as fast as new ones are added.
      const most = count() >= maxKeys * 0.9 ? 1000 : 4 * SWEPT_EVERY
      for (const row of selectPassed.all(nowMs, most)) {
        const id = numberIn(row, 'id')
        removeUses.run(id)
        if (!hasUses.get(id)) forget(id)
      }
    },
  }
}

/** A row has what was used from its number up to that of the next row, all at one time. */
interface CounterUses {
  timeOf(key: Key, number: number): number | undefined
  /** Adds the use that will be the key's next, and those of the same time that follow it. */
  add(key: Key, atMs: number): void
  /** Deletes the oldest uses of a key that no window has, at most so many. */
  removePassed(key: Key, nowMs: number, most: number): void
  /** Changes what was used at a time, or else last: by no more than is still kept. Returns by how much. */
  change(key: Key, atMs: number | undefined, by: number): number
  /** Takes so much from each number of a key. Nothing that was used before is kept. */
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
  // In two steps, since no number may exist twice at any moment.
  const moveAside = db.prepare('UPDATE counter_uses SET number = -number WHERE key_id = ? AND number > ?')
  const moveBack = db.prepare('UPDATE counter_uses SET number = ?2 - number WHERE key_id = ?1 AND number < 0')

  return {
    timeOf(key, number) {
      // The next number is that of a use which this take would add.
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

/** Returns UTF-16, which is different for every text. A lone surrogate has no UTF-8. */
function toBytes(name: string): Buffer {
  return Buffer.from(name, 'utf16le')
}
