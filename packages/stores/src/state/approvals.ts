import type { SQLInputValue, StatementSync } from 'node:sqlite'
import type { Approval } from '@toolgate/core'
import {
  approvalAt,
  type ApprovalBinding,
  type ApprovalFilter,
  approvalKeys,
  type ApprovalStatus,
  type ApprovalStore,
  checkApprovalFilter,
  checkPendingApprovals,
  decidedApproval,
  isLiveAt,
  tooManyApprovals,
} from '@toolgate/core/stores'
import type { StoresDatabase } from './database.ts'

export interface SqliteApprovalsOptions {
  /** How long an approval lives from its request. Default 10 minutes. */
  readonly ttlMs?: number | undefined
  /** How long one that is over is kept for people to see. Default 30 days. */
  readonly historyMs?: number | undefined
  /** How many are kept at most, live ones among them. Default 10,000. */
  readonly maxKept?: number | undefined
}

/** Over all that are kept, of JSON: what a disk can bear. */
const MAX_KEPT_CHARACTERS = 256_000_000
const DEFAULT_LIMIT = 100
const HISTORY_MS = 30 * 24 * 60 * 60 * 1000

type Row = Record<string, unknown>

/** What is needed to tell whether an approval is meant, without reading its input. */
const DATED = 'seq, status, requested_at, expires_at, characters'

/**
 * Gives the approvals that are kept in the database: they outlive the process, and each is used once by all of
 * the processes together.
 *
 * Has the bounds of those in memory. What is over is kept for 30 days, until 10,000 or 256 million characters of
 * inputs are kept.
 */
export function approvalsIn(
  db: StoresDatabase,
  { ttlMs = 600_000, historyMs = HISTORY_MS, maxKept = 10_000 }: SqliteApprovalsOptions = {},
): ApprovalStore {
  const selectById = db.prepare('SELECT * FROM approvals WHERE id = ?')
  const selectByBinding = db.prepare('SELECT * FROM approvals WHERE binding = ? ORDER BY seq DESC LIMIT 1')
  const selectPending = db.prepare(`SELECT ${DATED} FROM approvals WHERE asker = ? AND status = 'pending'`)
  const insert = db.prepare(
    'INSERT INTO approvals (id, binding, asker, tenant, user, tool, chat, status, requested_at, expires_at, characters, request) ' +
      "VALUES (?, ?, ?, ?, ?, ?, ?, 'pending', ?, ?, ?, ?)",
  )
  const setVerdict = db.prepare(
    'UPDATE approvals SET status = ?, decided_at = ?, decided_by = ?, reason = ? WHERE id = ?',
  )
  const setStatus = db.prepare('UPDATE approvals SET status = ? WHERE id = ?')
  const room = roomIn(db, { historyMs, maxKept })
  const select = selectIn(db)

  function find(id: string, nowMs: number): Approval | undefined {
    const row = selectById.get(id)
    return row && approvalAt(toApproval(row), nowMs)
  }

  function findLive(binding: string, nowMs: number): Approval | undefined {
    const row = selectByBinding.get(binding)
    const approval = row && toApproval(row)
    return approval && isLiveAt(approval, nowMs) ? approval : undefined
  }

  function checkPending(asker: string, characters: number, nowMs: number): void {
    const pending = { count: 0, characters: 0 }
    for (const row of selectPending.iterate(asker)) {
      if (!isLiveAt(toDated(row), nowMs)) continue
      pending.count++
      pending.characters += Number(row['characters'])
    }
    checkPendingApprovals(pending, characters)
  }

  return {
    request(binding, input, nowMs, { chat } = {}) {
      const keys = approvalKeys(binding)
      const current = db.read(() => findLive(keys.binding, nowMs))
      if (current) return current
      const characters = JSON.stringify(input)?.length ?? 0
      const request = JSON.stringify(toRequest(binding, input))
      const { tenant, user, tool } = binding
      return db.write(() => {
        const meanwhile = findLive(keys.binding, nowMs)
        if (meanwhile) return meanwhile
        room.make(characters, nowMs)
        checkPending(keys.user, characters, nowMs)
        const id = crypto.randomUUID()
        insert.run(
          id,
          keys.binding,
          keys.user,
          textOf(tenant),
          textOf(user),
          JSON.stringify(tool),
          textOf(chat),
          nowMs,
          nowMs + ttlMs,
          characters,
          request,
        )
        return find(id, nowMs) as Approval
      })
    },
    get: (id, nowMs) => db.read(() => find(id, nowMs)),
    list(filter, nowMs) {
      checkApprovalFilter(filter)
      return db.read(() => select(filter, nowMs))
    },
    decide: (id, verdict) =>
      db.write(() => {
        const approval = decidedApproval(find(id, verdict.atMs), id, verdict)
        setVerdict.run(approval.status, verdict.atMs, verdict.by, verdict.reason ?? null, id)
        return approval
      }),
    consume: (id, nowMs) =>
      db.write(() => {
        if (find(id, nowMs)?.status !== 'approved') return false
        setStatus.run('consumed', id)
        return true
      }),
    giveBack: (id) =>
      db.write(() => {
        if (selectById.get(id)?.['status'] === 'consumed') setStatus.run('approved', id)
      }),
  }
}

interface Room {
  /** Forgets what is over for long, and more of it where there is no room. Live ones stay. */
  make(characters: number, nowMs: number): void
}

function roomIn(db: StoresDatabase, { historyMs, maxKept }: { historyMs: number; maxKept: number }): Room {
  const removeOld = db.prepare(
    'DELETE FROM approvals WHERE seq IN (SELECT seq FROM approvals WHERE expires_at <= ? ORDER BY expires_at LIMIT 100)',
  )
  const selectSize = db.prepare('SELECT count(*) AS count, total(characters) AS characters FROM approvals')
  const selectOldest = db.prepare(`SELECT ${DATED} FROM approvals ORDER BY seq`)
  const remove = db.prepare('DELETE FROM approvals WHERE seq = ?')

  return {
    make(characters, nowMs) {
      removeOld.run(nowMs - historyMs)
      const size = selectSize.get() as { count: number; characters: number }
      const isFull = (): boolean => size.count >= maxKept || size.characters + characters > MAX_KEPT_CHARACTERS
      if (!isFull()) return
      const over = selectOldest.all().filter((row) => !isLiveAt(toDated(row), nowMs))
      for (const row of over) {
        if (!isFull()) break
        remove.run(row['seq'] as number)
        size.count--
        size.characters -= Number(row['characters'])
      }
      if (isFull()) throw tooManyApprovals()
    },
  }
}

function selectIn(db: StoresDatabase): (filter: ApprovalFilter, nowMs: number) => readonly Approval[] {
  const statements = new Map<string, StatementSync>()
  const selectWhole = db.prepare('SELECT * FROM approvals WHERE seq = ?')
  return ({ status, tenant, user, tool, chat, before, limit = DEFAULT_LIMIT }, nowMs) => {
    const filters: string[] = []
    const values: SQLInputValue[] = []
    const addFilter = (sql: string, value: string | undefined): void => {
      if (value === undefined) return
      filters.push(sql)
      values.push(value)
    }
    addFilter('tenant = ?', tenant === undefined ? undefined : JSON.stringify(tenant))
    addFilter('user = ?', user === undefined ? undefined : JSON.stringify(user))
    addFilter('tool = ?', tool === undefined ? undefined : JSON.stringify(tool))
    addFilter('chat = ?', chat === undefined ? undefined : JSON.stringify(chat))
    addFilter('seq < (SELECT seq FROM approvals WHERE id = ?)', before)
    // One that has expired is kept as it was before.
    if (status === 'expired') filters.push("status IN ('pending', 'approved')")
    else addFilter('status = ?', status)
    const where = filters.length > 0 ? `WHERE ${filters.join(' AND ')}` : ''
    const sql = `SELECT ${DATED} FROM approvals ${where} ORDER BY seq DESC`
    const statement = statements.get(sql) ?? db.prepare(sql)
    statements.set(sql, statement)
    const found: Approval[] = []
    for (const row of statement.iterate(...values)) {
      if (found.length >= limit) break
      // What an approval is depends on the time, so it is asked of the approval, not of the database.
      if (status !== undefined && approvalAt(toDated(row), nowMs).status !== status) continue
      found.push(approvalAt(toApproval(selectWhole.get(row['seq'] as number) as Row), nowMs))
    }
    return found
  }
}

function toRequest(binding: ApprovalBinding, input: unknown): ApprovalBinding & { readonly input: unknown } {
  const { tenant, user, tool, definitionHash, inputHash, run } = binding
  return { tenant, user, tool, definitionHash, inputHash, run, input }
}

/** Gives what an approval's times decide, without its input. */
function toDated(row: Row): Approval {
  return {
    status: row['status'],
    requestedAt: row['requested_at'],
    expiresAt: row['expires_at'],
  } as Approval
}

function toApproval(row: Row): Approval {
  const { tenant, user, tool, definitionHash, inputHash, run, input } = JSON.parse(row['request'] as string) as Approval
  return Object.freeze({
    id: row['id'] as string,
    status: row['status'] as ApprovalStatus,
    tenant,
    user,
    tool,
    definitionHash,
    inputHash,
    run,
    ...(row['chat'] === null ? {} : { chat: JSON.parse(row['chat'] as string) as string }),
    input,
    requestedAt: row['requested_at'] as number,
    expiresAt: row['expires_at'] as number,
    ...(row['decided_at'] === null ? {} : { decidedAt: row['decided_at'] as number }),
    ...(row['decided_by'] === null ? {} : { decidedBy: row['decided_by'] as string }),
    ...(row['reason'] === null ? {} : { reason: row['reason'] as string }),
  })
}

/** JSON keeps an absent one apart from every text, and can say every text. */
function textOf(value: string | undefined): string | null {
  return value === undefined ? null : JSON.stringify(value)
}
