import type { SQLInputValue, StatementSync } from 'node:sqlite'
import type { Approval } from '@toolgate/core'
import {
  approvalAt,
  type ApprovalFilter,
  approvalKeys,
  type ApprovalStore,
  checkApprovalFilter,
  decidedApproval,
  isLiveAt,
} from '@toolgate/core/stores'
import { numberIn, type Row, textIn } from '../rows.ts'
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
} from './approval-rows.ts'
import type { StoresDatabase } from './database.ts'
import { tried } from '../state-rows.ts'

/**
 * Returns the approvals in the database. They survive the process, and each can be used once across all processes.
 *
 * The bounds are those of the approvals in memory. Ended approvals are kept for 30 days, up to 10,000 of them and 256
 * million characters of JSON.
 */
export function approvalsIn(db: StoresDatabase, options: StoredApprovalsOptions = {}): ApprovalStore {
  const { ttlMs, ...bounds } = withDefaults(options)
  const table = new ApprovalTable(db, bounds)
  const { sql } = table
  const select = selectIn(db)
  return {
    request(binding, input, nowMs, about = {}) {
      const current = db.read(() => table.findLive(approvalKeys(binding).binding, nowMs))
      if (current) return current
      const { keys, id, texts, characters, request } = toNewRow(binding, input, about)
      return db.write(() => {
        const meanwhile = table.findLive(keys.binding, nowMs)
        if (meanwhile) return meanwhile
        table.makeRoom(characters, nowMs)
        checkPending(sql.selectPending.iterate(keys.user), characters, nowMs)
        const dates = [nowMs, nowMs + ttlMs]
        const row = sql.insert.get(id, keys.binding, keys.user, ...texts, ...dates, characters, request ?? null)
        return approvalAt(toApproval(row ?? {}), nowMs)
      })
    },
    get: (id, nowMs) => table.see(id, nowMs),
    list(filter, nowMs) {
      checkApprovalFilter(filter)
      const { found, ended } = db.read(() => select(filter, nowMs))
      table.markEnds(ended, nowMs)
      return found
    },
    decide(id, verdict) {
      table.see(id, verdict.atMs)
      return db.write(() => {
        const approval = decidedApproval(table.find(id, verdict.atMs), id, verdict)
        const { status, decidedAt, decidedBy, reason } = approval
        sql.setVerdict.run(status, decidedAt ?? null, decidedBy ?? null, reason ?? null, votesOf(approval), id)
        return approval
      })
    },
    consume(id, nowMs, spend) {
      table.see(id, nowMs)
      return db.write(() => {
        if (table.find(id, nowMs)?.status !== 'approved') return sql.isConsumedBy.get(id, spend ?? null) !== undefined
        sql.consume.run(spend ?? null, id)
        return true
      })
    },
    giveBack: (id, spend) => db.write(() => void sql.giveBack.run(id, spend ?? null)),
  }
}

/** The rows of approvals, as of a time. */
class ApprovalTable {
  readonly sql: ReturnType<typeof statementsIn>
  readonly #db: StoresDatabase
  readonly #bounds: { readonly historyMs: number; readonly maxKept: number }

  constructor(db: StoresDatabase, bounds: { readonly historyMs: number; readonly maxKept: number }) {
    this.#db = db
    this.#bounds = bounds
    this.sql = statementsIn(db)
  }

  /** Stores `expired` for approvals that were found expired, before anything else uses them. */
  markEnds(rows: readonly Row[], nowMs: number): void {
    const ended = rows.filter((row) => isEnded(row, nowMs)).map((row) => textIn(row, 'id'))
    if (ended.length > 0)
      void tried(() => this.#db.write(() => ended.forEach((id) => this.sql.setExpired.run(id, nowMs))))
  }

  see(id: string, nowMs: number): Approval | undefined {
    const row = this.#db.read(() => this.sql.selectById.get(id))
    if (row) this.markEnds([row], nowMs)
    return row && approvalAt(toApproval(row), nowMs)
  }

  find(id: string, nowMs: number): Approval | undefined {
    const row = this.sql.selectById.get(id)
    return row && approvalAt(toApproval(row), nowMs)
  }

  findLive(binding: string, nowMs: number): Approval | undefined {
    const row = this.sql.selectByBinding.get(binding)
    const approval = row && toApproval(row)
    return approval && isLiveAt(approval, nowMs) ? approval : undefined
  }

  /** Deletes approvals that ended long ago, and more recent ones if there is no room. Live ones stay. */
  makeRoom(characters: number, nowMs: number): void {
    this.sql.removeOld.run(nowMs - this.#bounds.historyMs)
    const room = fullness(this.sql.selectSize.get() ?? {}, characters, this.#bounds.maxKept)
    if (!room.isFull()) return
    for (const seq of room.findRemovable(this.sql.selectOldest.all(), nowMs)) this.sql.remove.run(Number(seq))
  }
}

function statementsIn(db: StoresDatabase) {
  return {
    selectById: db.prepare('SELECT * FROM approvals WHERE id = ?'),
    selectByBinding: db.prepare('SELECT * FROM approvals WHERE binding = ? ORDER BY seq DESC LIMIT 1'),
    selectPending: db.prepare(`SELECT ${DATED} FROM approvals WHERE asker = ? AND status = 'pending'`),
    insert: db.prepare(
      'INSERT INTO approvals (id, binding, asker, tenant, user, tool, chat, status, requested_at, expires_at, characters, request) ' +
        "VALUES (?, ?, ?, ?, ?, ?, ?, 'pending', ?, ?, ?, ?) RETURNING *",
    ),
    setVerdict: db.prepare(
      'UPDATE approvals SET status = ?, decided_at = ?, decided_by = ?, reason = ?, votes = ? WHERE id = ?',
    ),
    consume: db.prepare("UPDATE approvals SET status = 'consumed', spend = ? WHERE id = ?"),
    isConsumedBy: db.prepare("SELECT 1 FROM approvals WHERE id = ? AND status = 'consumed' AND spend = ?"),
    giveBack: db.prepare(
      "UPDATE approvals SET status = 'approved', spend = NULL " +
        "WHERE id = ?1 AND status = 'consumed' AND (?2 IS NULL OR spend = ?2)",
    ),
    setExpired: db.prepare(
      "UPDATE approvals SET status = 'expired' WHERE id = ? AND status IN ('pending', 'approved') AND expires_at <= ?",
    ),
    removeOld: db.prepare(
      'DELETE FROM approvals WHERE seq IN (SELECT seq FROM approvals WHERE expires_at <= ? ORDER BY expires_at LIMIT 100)',
    ),
    selectSize: db.prepare('SELECT count(*) AS count, total(characters) AS characters FROM approvals'),
    selectOldest: db.prepare(`SELECT ${DATED} FROM approvals ORDER BY seq`),
    remove: db.prepare('DELETE FROM approvals WHERE seq = ?'),
  }
}

type Select = (
  filter: ApprovalFilter,
  nowMs: number,
) => { readonly found: readonly Approval[]; readonly ended: readonly Row[] }

function selectIn(db: StoresDatabase): Select {
  const statements = new Map<string, StatementSync>()
  const selectWhole = db.prepare('SELECT * FROM approvals WHERE seq = ?')
  return ({ status, tenant, user, tool, chat, before, limit = DEFAULT_LIMIT }, nowMs) => {
    const stored = storedStatuses(status)
    const filters: readonly (readonly [string, SQLInputValue])[] = [
      ['tenant = ?', textOf(tenant)],
      ['user = ?', textOf(user)],
      ['tool = ?', textOf(tool)],
      ['chat = ?', textOf(chat)],
      ['seq < (SELECT seq FROM approvals WHERE id = ?)', before ?? null],
      ['status IN (SELECT value FROM json_each(?))', stored === undefined ? null : JSON.stringify(stored)],
    ]
    const given = filters.filter(([, value]) => value !== null)
    const where = given.length > 0 ? `WHERE ${given.map(([condition]) => condition).join(' AND ')}` : ''
    const text = `SELECT ${DATED} FROM approvals ${where} ORDER BY seq DESC`
    const statement = statements.get(text) ?? db.prepare(text)
    statements.set(text, statement)
    const found: Approval[] = []
    const ended: Row[] = []
    for (const row of statement.iterate(...given.map(([, value]) => value))) {
      if (found.length >= limit) break
      if (isEnded(row, nowMs)) ended.push(row)
      if (!hasStatus(row, status, nowMs)) continue
      const whole = selectWhole.get(numberIn(row, 'seq'))
      if (whole) found.push(approvalAt(toApproval(whole), nowMs))
    }
    return { found, ended }
  }
}
