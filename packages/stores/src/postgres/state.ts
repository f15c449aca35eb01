import { ToolgateError } from '@toolgate/core'
import {
  checkStateKey,
  checkStatePrefix,
  type Clock,
  parseStateText,
  type StateOptions,
  type StateStore,
  systemClock,
  toStateExpiry,
  toStateText,
} from '@toolgate/core/stores'
import { lockLost, sessionBytes } from '../leased-lock.ts'
import { bytesIn, numberIn, type Row, textIn } from '../rows.ts'
import { StateChanges } from '../state-changes.ts'
import { keysWith, toEntry, tried } from '../state-rows.ts'
import { type PostgresDatabase, SERVER_MS, type Statement, statement } from './database.ts'

export interface PostgresState extends StateStore {
  /** Returns the number of changes so far, from the primary. A later read of the state sees all of them. */
  readRevision(): Promise<number>
  close(): void
}

/**
 * Returns the state in the database, shared by all replicas.
 *
 * Expiries are stored in the server's time. The time left is computed by the clock of the replica that sets it, so
 * replicas' clocks may differ.
 */
export async function openState(db: PostgresDatabase, clock: Clock | undefined): Promise<PostgresState> {
  const sql = statementsFor(db.schema)
  /** The revision at which the copied state was last read. */
  let seen = 0
  const changes = new StateChanges(readRevision, await readRevision())
  const nowMs = (): number | null => clock?.wallMs() ?? null

  async function readRevision(): Promise<number> {
    const [row] = await db.query(sql.selectRevision)
    return numberIn(row ?? {}, 'revision')
  }

  /**
   * Detects a standby that was behind and has lost changes. Replicas that applied them keep them until a person accepts
   * the loss.
   *
   * @throws {ToolgateError} `state_unavailable`
   */
  function checkNotOlder(revision: number): void {
    if (revision < seen)
      throw new ToolgateError('state_unavailable', 'The state cannot be read or written.', {
        detail: `the database has ${revision} changes, and this process has seen ${seen}`,
      })
    seen = revision
  }

  /** Notifies the listeners after a change. The row has the change's revision. */
  function changed(row: Row | undefined): boolean {
    if (typeof row?.['revision'] !== 'string') return false
    changes.notify(numberIn(row, 'revision'))
    return true
  }

  async function put(change: Statement, key: string, value: unknown, options: StateOptions = {}): Promise<boolean> {
    checkStateKey(key)
    const { fence } = options
    const fenced = fence === undefined ? [null, null] : [sessionBytes(fence.session), fence.fencingToken]
    const values = [nowMs(), Buffer.from(key), toStateText(value), leftMs(options, clock), ...fenced]
    const [row = {}] = await db.query(change, values)
    if (row['holds'] !== true) throw lockLost()
    return changed(row)
  }

  /**
   * Removes entries that were found expired, so that they stay expired if a clock is set back. A failed removal does
   * not change the answer.
   */
  async function forget(keys: readonly Uint8Array[]): Promise<void> {
    if (keys.length > 0) await tried(() => db.query(sql.forget, [nowMs(), keys]))
  }

  return {
    readRevision,
    async get(key) {
      checkStateKey(key)
      const [row] = await db.query(sql.select, [nowMs(), Buffer.from(key)])
      if (row?.['live'] === false) await forget([Buffer.from(key)])
      return row?.['live'] === true ? parseStateText(textIn(row, 'value')) : undefined
    },
    async set(key, value, options) {
      await put(sql.set, key, value, options)
    },
    add: (key, value, options) => put(sql.add, key, value, options),
    async take(key) {
      checkStateKey(key)
      const [row] = await db.query(sql.take, [nowMs(), Buffer.from(key)])
      return row && changed(row) ? parseStateText(textIn(row, 'value')) : undefined
    },
    async list(prefix) {
      checkStatePrefix(prefix)
      const rows = await db.query(sql.list, [nowMs(), ...keysWith(prefix)])
      checkNotOlder(numberIn(rows[0] ?? {}, 'revision'))
      await forget(rows.filter((row) => row['live'] === false).map((row) => bytesIn(row, 'key')))
      return rows.filter((row) => row['live'] === true).map(toEntry)
    },
    subscribe: changes.subscribe,
    close: changes.close,
  }
}

/** Returns the milliseconds until an expiry; `null` for never. */
function leftMs(options: StateOptions, clock: Clock = systemClock): number | null {
  const expiresAt = toStateExpiry(options)
  if (expiresAt === Number.POSITIVE_INFINITY) return null
  return Math.max(expiresAt - clock.wallMs(), -Number.MAX_SAFE_INTEGER)
}

/**
 * The statements of a schema. The first parameter is the time, or null for the server's.
 *
 * A change locks the row of its key first and the revision last, so that no two changes wait for each other. Each
 * removes at most two expired rows, which is more than it adds.
 */
function statementsFor(schema: string) {
  const isLive = `(expires_at IS NULL OR expires_at > ${SERVER_MS})`
  const put = `
    WITH fenced AS (
      SELECT FROM ${schema}.leases WHERE session = $5 AND token = $6 FOR SHARE
    ), removed AS (
      DELETE FROM ${schema}.state WHERE key IN (
        SELECT key FROM ${schema}.state WHERE expires_at <= ${SERVER_MS} AND key <> $2
        ORDER BY expires_at LIMIT 2 FOR UPDATE SKIP LOCKED)
    ), changed AS (
      INSERT INTO ${schema}.state AS old (key, value, expires_at)
      SELECT $2::bytea, $3::text, ${SERVER_MS} + $4::float8 WHERE $6::bigint IS NULL OR EXISTS (SELECT FROM fenced)
      ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at`
  const count = `
    UPDATE ${schema}.state_revision SET revision = revision + 1 WHERE EXISTS (SELECT FROM changed) RETURNING revision`
  const counted = `
    counted AS (${count})
    SELECT (SELECT revision FROM counted), $6::bigint IS NULL OR EXISTS (SELECT FROM fenced) AS holds`
  return {
    select: statement(`SELECT value, ${isLive} AS live FROM ${schema}.state WHERE key = $2`),
    forget: statement(`DELETE FROM ${schema}.state WHERE key = ANY ($2::bytea[]) AND NOT ${isLive}`),
    list: statement(`
      SELECT key, value, live, revision FROM ${schema}.replica_state LEFT JOIN LATERAL (
        SELECT key, CASE WHEN ${isLive} THEN value END AS value, ${isLive} AS live FROM ${schema}.state
        WHERE key >= $2 AND key < $3) found ON true ORDER BY key`),
    set: statement(`${put} RETURNING 1), ${counted}`),
    add: statement(`${put} WHERE old.expires_at <= ${SERVER_MS} RETURNING 1), ${counted}`),
    take: statement(`
      WITH gone AS (DELETE FROM ${schema}.state WHERE key = $2 RETURNING value, expires_at),
      changed AS (SELECT value FROM gone WHERE ${isLive}),
      counted AS (${count})
      SELECT value, revision FROM changed, counted`),
    selectRevision: statement(`SELECT revision FROM ${schema}.state_revision`),
  }
}
