import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Approval, ToolgateError } from '@toolgate/core'
import { readOwnJson } from '@toolgate/values/json'
import {
  approvalAt,
  approvalKeys,
  type ApprovalStore,
  checkApprovalFilter,
  decidedApproval,
  isLiveAt,
} from '@toolgate/core/stores'
import type { Row } from '../rows.ts'
import {
  checkPending,
  DATED,
  DEFAULT_LIMIT,
  fullness,
  hasStatus,
  isEnded,
  type StoredApprovalsOptions,
  storedStatuses,
  textOf,
  toApproval,
  toNewRow,
  votesOf,
  withDefaults,
} from '../state/approval-rows.ts'
import { tried } from '../state-rows.ts'
import { type PostgresDatabase, statement } from './database.ts'

/** The maximum number of tries of a request that another request of the same asker interrupts. */
const MAX_TRIES = 200
const PAGE = 500
const COUNTED_EVERY_MS = 1000

/**
 * Returns the approvals in the database, each used once by all replicas together.
 *
 * The bounds are those of the approvals in memory and in SQLite. Each change is one statement that applies only if the
 * row is unchanged since it was read. Otherwise the row is read again.
 */
export function approvalsIn(db: PostgresDatabase, options: StoredApprovalsOptions = {}): ApprovalStore {
  const { ttlMs, historyMs, maxKept } = withDefaults(options)
  const sql = statementsFor(db.schema)

  async function find(id: string, nowMs: number): Promise<Approval | undefined> {
    // Our ids never contain a NUL, which the server rejects.
    const [row] = id.includes('\0') ? [] : await db.query(sql.selectById, [id])
    if (row) await markEnds([row], nowMs)
    return row && approvalAt(toOwnApproval(row), nowMs)
  }

  /** Stores `expired` for approvals that were found expired, before anything else uses them. */
  async function markEnds(rows: readonly Row[], nowMs: number): Promise<void> {
    const ended = rows.filter((row) => isEnded(row, nowMs)).map((row) => row['seq'])
    if (ended.length > 0) await tried(() => db.query(sql.setExpired, [ended, nowMs]))
  }

  async function findLive(binding: Buffer, nowMs: number): Promise<Approval | undefined> {
    const [row] = await db.query(sql.selectByBinding, [binding])
    const approval = row && toOwnApproval(row)
    return approval && isLiveAt(approval, nowMs) ? approval : undefined
  }

  const makeRoom = roomIn(db, sql, { historyMs, maxKept })

  return {
    async request(binding, input, nowMs, about = {}) {
      const keys = approvalKeys(binding)
      const [bound, asker] = [digestOf(keys.binding), digestOf(keys.user)]
      const current = await findLive(bound, nowMs)
      if (current) return current
      const { id, texts, characters, request } = toNewRow(binding, input, about)
      await makeRoom(characters, nowMs)
      return untilDone(async () => {
        // This read is at least as new as the asker's newest approval, and the insert checks that it is still the
        // newest.
        const ofAsker = await db.query(sql.selectOfAsker, [asker])
        const meanwhile = await findLive(bound, nowMs)
        if (meanwhile) return meanwhile
        checkPending(ofAsker, characters, nowMs)
        const newest = ofAsker[0]?.['seq'] ?? 0
        const dates = [nowMs, nowMs + ttlMs]
        const values = [newest, id, bound, asker, ...texts, ...dates, characters, request]
        const [row] = await db.query(sql.insert, values)
        return row && toOwnApproval(row)
      })
    },
    get: find,
    list: listIn(db, sql, markEnds),
    decide: (id, verdict) =>
      untilDone(async () => {
        const current = await find(id, verdict.atMs)
        const approval = decidedApproval(current, id, verdict)
        const { status, decidedAt, decidedBy, reason } = approval
        const decided = [status, decidedAt, textOf(decidedBy), textOf(reason), votesOf(approval)]
        const values = [id, current?.status, ...decided, current ? votesOf(current) : null]
        const { length } = await db.query(sql.decide, values)
        return length === 1 ? approval : undefined
      }),
    async consume(id, nowMs, spend) {
      const status = (await find(id, nowMs))?.status
      if (status !== 'approved' && status !== 'consumed') return false
      return (await db.query(sql.consume, [id, status, spend ?? null])).length === 1
    },
    async giveBack(id, spend) {
      if (!id.includes('\0')) await db.query(sql.giveBack, [id, spend ?? null])
    },
  }
}

/** Returns the list of a filter's approvals, newest first. It is read in pages, whose ended approvals are marked. */
function listIn(
  db: PostgresDatabase,
  sql: ReturnType<typeof statementsFor>,
  markEnds: (rows: readonly Row[], nowMs: number) => Promise<void>,
): ApprovalStore['list'] {
  /** Returns the start of a page, or `undefined` for an unknown id. */
  async function seqOf(before: string | undefined): Promise<unknown> {
    if (before === undefined) return '9223372036854775807'
    const [row] = before.includes('\0') ? [] : await db.query(sql.selectSeq, [before])
    return row?.['seq']
  }

  return async ({ before, limit = DEFAULT_LIMIT, ...filter }, nowMs) => {
    checkApprovalFilter(filter)
    const { status, tenant, user, tool, chat } = filter
    const values = [tenant, user, tool, chat].map(textOf)
    const stored = storedStatuses(status) ?? null
    const found: unknown[] = []
    let from = await seqOf(before)
    while (from !== undefined && found.length < limit) {
      const rows = await db.query(sql.selectPage, [from, stored, ...values, PAGE])
      await markEnds(rows, nowMs)
      const matching = rows.filter((row) => hasStatus(row, status, nowMs))
      found.push(...matching.slice(0, limit - found.length).map((row) => row['seq']))
      from = rows.length < PAGE ? undefined : rows.at(-1)?.['seq']
    }
    const rows = found.length === 0 ? [] : await db.query(sql.selectBySeq, [found])
    return rows.map((row) => approvalAt(toOwnApproval(row), nowMs))
  }
}

/**
 * Returns a function that deletes approvals that ended long ago, and more recent ones if there is no room. Live ones
 * stay. Counting takes time proportional to the rows, so it runs once a second, and the bound may be exceeded by the
 * approvals of one second.
 */
function roomIn(
  db: PostgresDatabase,
  sql: ReturnType<typeof statementsFor>,
  { historyMs, maxKept }: { readonly historyMs: number; readonly maxKept: number },
): (characters: number, nowMs: number) => Promise<void> {
  /** The time of the last count that found room. */
  let roomyAtMs = Number.NEGATIVE_INFINITY
  return async (characters, nowMs) => {
    if (performance.now() - roomyAtMs < COUNTED_EVERY_MS) return
    await db.query(sql.removeOld, [nowMs - historyMs])
    const [row = {}] = await db.query(sql.selectSize)
    const room = fullness(row, characters, maxKept)
    if (room.isFull()) await db.query(sql.remove, [room.findRemovable(await db.query(sql.selectOldest), nowMs)])
    else roomyAtMs = performance.now()
  }
}

function statementsFor(schema: string) {
  const approvals = `${schema}.approvals`
  return {
    selectById: statement(`SELECT * FROM ${approvals} WHERE id = $1`),
    selectByBinding: statement(`SELECT * FROM ${approvals} WHERE binding = $1 ORDER BY seq DESC LIMIT 1`),
    selectOfAsker: statement(`
      (SELECT ${DATED} FROM ${approvals} WHERE asker = $1 ORDER BY seq DESC LIMIT 1)
      UNION (SELECT ${DATED} FROM ${approvals} WHERE asker = $1 AND status = 'pending')
      ORDER BY seq DESC`),
    selectSize: statement(`SELECT count(*) AS count, coalesce(sum(characters), 0) AS characters FROM ${approvals}`),
    selectOldest: statement(`SELECT ${DATED} FROM ${approvals} ORDER BY seq`),
    removeOld: statement(`
      DELETE FROM ${approvals} WHERE seq IN (
        SELECT seq FROM ${approvals} WHERE expires_at <= $1 ORDER BY expires_at LIMIT 1000 FOR UPDATE SKIP LOCKED)`),
    remove: statement(`DELETE FROM ${approvals} WHERE seq = ANY ($1::bigint[])`),
    // The lock keeps the newest approval unchanged until the insert.
    insert: statement(`
      WITH newest AS (SELECT FROM ${approvals} WHERE seq = $1 FOR KEY SHARE)
      INSERT INTO ${approvals} (follows, id, binding, asker, tenant, "user", tool, chat, status, requested_at, expires_at,
        characters, request)
      SELECT $1::bigint, $2::text, $3::bytea, $4::bytea, $5::text, $6::text, $7::text, $8::text, 'pending', $9::float8,
        $10::float8, $11::bigint, $12::text
      WHERE $1::bigint = 0 OR EXISTS (SELECT FROM newest)
      ON CONFLICT (asker, follows) DO NOTHING RETURNING *`),
    selectSeq: statement(`SELECT seq FROM ${approvals} WHERE id = $1`),
    selectPage: statement(`
      SELECT ${DATED} FROM ${approvals}
      WHERE seq < $1 AND ($2::text[] IS NULL OR status = ANY ($2)) AND ($3::text IS NULL OR tenant = $3)
        AND ($4::text IS NULL OR "user" = $4) AND ($5::text IS NULL OR tool = $5) AND ($6::text IS NULL OR chat = $6)
      ORDER BY seq DESC LIMIT $7`),
    selectBySeq: statement(`SELECT * FROM ${approvals} WHERE seq = ANY ($1::bigint[]) ORDER BY seq DESC`),
    decide: statement(`
      UPDATE ${approvals} SET status = $3, decided_at = $4, decided_by = $5, reason = $6, votes = $7
      WHERE id = $1 AND status = $2 AND votes IS NOT DISTINCT FROM $8 RETURNING 1`),
    setExpired: statement(`
      UPDATE ${approvals} SET status = 'expired'
      WHERE seq = ANY ($1::bigint[]) AND status IN ('pending', 'approved') AND expires_at <= $2`),
    consume: statement(`
      UPDATE ${approvals} SET status = 'consumed', spend = $3
      WHERE id = $1 AND status = $2 AND ($2 = 'approved' OR spend = $3) RETURNING 1`),
    giveBack: statement(`
      UPDATE ${approvals} SET status = 'approved', spend = NULL
      WHERE id = $1 AND status = 'consumed' AND ($2::text IS NULL OR spend = $2)`),
  }
}

/** Repeats a change that returns nothing because another change came first. Each time, one of the two succeeds. */
async function untilDone<T>(change: () => Promise<T | undefined>): Promise<T> {
  for (let tries = 1; tries <= MAX_TRIES; tries++) {
    const done = await change()
    if (done !== undefined) return done
    await sleep(Math.random() * Math.min(tries, 20))
  }
  throw new ToolgateError('state_unavailable', 'The state cannot be written: too many changes at once.')
}

/** Returns an approval. Texts by people are stored as JSON, because a text in Postgres cannot contain a NUL. */
function toOwnApproval(row: Row): Approval {
  return toApproval({ ...row, decided_by: parseText(row['decided_by']), reason: parseText(row['reason']) })
}

function parseText(text: unknown): unknown {
  return typeof text === 'string' ? readOwnJson(text) : text
}

/** Returns a digest. It has one length for any text, so that it can be indexed. */
function digestOf(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
