import type { SQLInputValue, StatementSync } from 'node:sqlite'
import type { Approval } from '@toolgate/core'
import { approvalStatusAt, isEndSeen } from '@toolgate/core/internal'
import { toJsonText } from '@toolgate/core/words'
import {
  approvalAt,
  type ApprovalBinding,
  type ApprovalFilter,
  approvalKeys,
  type ApprovalStore,
  checkApprovalFilter,
  checkPendingApprovals,
  decidedApproval,
  isLiveAt,
  tooManyApprovals,
} from '@toolgate/core/stores'
import { numberIn, textIn } from '../rows.ts'
import {
  DEFAULT_LIMIT,
  HISTORY_MS,
  MAX_KEPT_CHARACTERS,
  type StoredApprovalsOptions,
  textOf,
  toApproval,
  toDated,
  toRequest,
} from './approval-rows.ts'
import type { StoresDatabase } from './database.ts'
import { tried } from './state.ts'

/** The columns that decide whether an approval matches, without its input. */
const DATED = 'seq, id, status, requested_at, expires_at, characters'

/**
 * Returns the approvals in the database. They outlive the process, and each is used once by all processes together.
 *
 * The bounds are those of the approvals in memory. Approvals that are over are kept for 30 days, up to 10,000 of them and
 * 256 million characters of inputs.
 */
export function approvalsIn(
  db: StoresDatabase,
  { ttlMs = 600_000, historyMs = HISTORY_MS, maxKept = 10_000 }: StoredApprovalsOptions = {},
): ApprovalStore {
  const setVerdict = db.prepare(
    'UPDATE approvals SET status = ?, decided_at = ?, decided_by = ?, reason = ? WHERE id = ?',
  )
  const consume = db.prepare("UPDATE approvals SET status = 'consumed', spend = ? WHERE id = ?")
  const isConsumedBy = db.prepare("SELECT 1 FROM approvals WHERE id = ? AND status = 'consumed' AND spend = ?")
  const giveBack = db.prepare(
    "UPDATE approvals SET status = 'approved', spend = NULL " +
      "WHERE id = ?1 AND status = 'consumed' AND (?2 IS NULL OR spend = ?2)",
  )
  const { find, findDated, findLive } = findersIn(db)
  const checkPending = pendingIn(db)
  const insert = insertIn(db)
  const room = roomIn(db, { historyMs, maxKept })
  const select = selectIn(db)
  const setExpired = db.prepare(
    "UPDATE approvals SET status = 'expired' WHERE id = ? AND status IN ('pending', 'approved') AND expires_at <= ?",
  )

  /** Keeps as expired what was seen so, before anything else is done with it. */
  function markEnds(ids: readonly string[], nowMs: number): void {
    if (ids.length > 0) void tried(() => db.write(() => ids.forEach((id) => setExpired.run(id, nowMs))))
  }

  function see(id: string, nowMs: number): Approval | undefined {
    const { approval, isEnded } = db.read(() => findDated(id, nowMs))
    if (isEnded) markEnds([id], nowMs)
    return approval
  }

  return {
    request(binding, input, nowMs, about = {}) {
      const keys = approvalKeys(binding)
      const current = db.read(() => findLive(keys.binding, nowMs))
      if (current) return current
      const characters = (toJsonText(input)?.length ?? 0) + (about.trail ? JSON.stringify(about.trail).length : 0)
      const request = toJsonText(toRequest(binding, input, about))
      return db.write(() => {
        const meanwhile = findLive(keys.binding, nowMs)
        if (meanwhile) return meanwhile
        room.make(characters, nowMs)
        checkPending(keys.user, characters, nowMs)
        return insert({ binding, keys, chat: about.chat, nowMs, ttlMs, characters, request })
      })
    },
    get: see,
    list(filter, nowMs) {
      checkApprovalFilter(filter)
      const { found, ended } = db.read(() => select(filter, nowMs))
      markEnds(ended, nowMs)
      return found
    },
    decide(id, verdict) {
      see(id, verdict.atMs)
      return db.write(() => {
        const approval = decidedApproval(find(id, verdict.atMs), id, verdict)
        setVerdict.run(approval.status, verdict.atMs, verdict.by, verdict.reason ?? null, id)
        return approval
      })
    },
    consume(id, nowMs, spend) {
      see(id, nowMs)
      return db.write(() => {
        if (find(id, nowMs)?.status !== 'approved') return isConsumedBy.get(id, spend ?? null) !== undefined
        consume.run(spend ?? null, id)
        return true
      })
    },
    giveBack: (id, spend) =>
      db.write(() => {
        giveBack.run(id, spend ?? null)
      }),
  }
}

interface Finders {
  /** Also says whether it has reached its end, and the row does not say so yet. */
  findDated(id: string, nowMs: number): { readonly approval: Approval | undefined; readonly isEnded: boolean }
  find(id: string, nowMs: number): Approval | undefined
  findLive(binding: string, nowMs: number): Approval | undefined
}

function findersIn(db: StoresDatabase): Finders {
  const selectById = db.prepare('SELECT * FROM approvals WHERE id = ?')
  const selectByBinding = db.prepare('SELECT * FROM approvals WHERE binding = ? ORDER BY seq DESC LIMIT 1')
  const findDated: Finders['findDated'] = (id, nowMs) => {
    const row = selectById.get(id)
    const kept = row && toApproval(row)
    return { approval: kept && approvalAt(kept, nowMs), isEnded: kept !== undefined && isEndSeen(kept, nowMs) }
  }
  return {
    findDated,
    find: (id, nowMs) => findDated(id, nowMs).approval,
    findLive(binding, nowMs) {
      const row = selectByBinding.get(binding)
      const approval = row && toApproval(row)
      return approval && isLiveAt(approval, nowMs) ? approval : undefined
    },
  }
}

/** Returns a check that a user has room for one more pending approval. */
function pendingIn(db: StoresDatabase): (asker: string, characters: number, nowMs: number) => void {
  const selectPending = db.prepare(`SELECT ${DATED} FROM approvals WHERE asker = ? AND status = 'pending'`)
  return (asker, characters, nowMs) => {
    const pending = { count: 0, characters: 0 }
    for (const row of selectPending.iterate(asker)) {
      if (!isLiveAt(toDated(row), nowMs)) continue
      pending.count++
      pending.characters += numberIn(row, 'characters')
    }
    checkPendingApprovals(pending, characters)
  }
}

interface NewApproval {
  readonly binding: ApprovalBinding
  readonly keys: ReturnType<typeof approvalKeys>
  readonly chat: string | undefined
  readonly nowMs: number
  readonly ttlMs: number
  readonly characters: number
  readonly request: string
}

function insertIn(db: StoresDatabase): (approval: NewApproval) => Approval {
  const insert = db.prepare(
    'INSERT INTO approvals (id, binding, asker, tenant, user, tool, chat, status, requested_at, expires_at, characters, request) ' +
      "VALUES (?, ?, ?, ?, ?, ?, ?, 'pending', ?, ?, ?, ?) RETURNING *",
  )
  return ({ binding: { tenant, user, tool }, keys, chat, nowMs, ttlMs, characters, request }) => {
    const row = insert.get(
      crypto.randomUUID(),
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
    return approvalAt(toApproval(row ?? {}), nowMs)
  }
}

interface Room {
  /** Deletes approvals that were over long ago, and more recent ones if there is no room. Live ones stay. */
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
      const row = selectSize.get() ?? {}
      const size = { count: numberIn(row, 'count'), characters: numberIn(row, 'characters') }
      const isFull = (): boolean => size.count >= maxKept || size.characters + characters > MAX_KEPT_CHARACTERS
      if (!isFull()) return
      const over = selectOldest.all().filter((each) => !isLiveAt(toDated(each), nowMs))
      for (const each of over) {
        if (!isFull()) break
        remove.run(numberIn(each, 'seq'))
        size.count--
        size.characters -= numberIn(each, 'characters')
      }
      if (isFull()) throw tooManyApprovals()
    },
  }
}

interface Listed {
  readonly found: readonly Approval[]
  /** The ids of those that have reached their end, and whose rows do not say so yet. */
  readonly ended: readonly string[]
}

function selectIn(db: StoresDatabase): (filter: ApprovalFilter, nowMs: number) => Listed {
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
    // An approval is stored with its earlier status until somebody has seen that it has expired.
    if (status === 'expired') filters.push("status IN ('pending', 'approved', 'expired')")
    else addFilter('status = ?', status)
    const where = filters.length > 0 ? `WHERE ${filters.join(' AND ')}` : ''
    const sql = `SELECT ${DATED} FROM approvals ${where} ORDER BY seq DESC`
    const statement = statements.get(sql) ?? db.prepare(sql)
    statements.set(sql, statement)
    const found: Approval[] = []
    const ended: string[] = []
    for (const row of statement.iterate(...values)) {
      if (found.length >= limit) break
      if (isEndSeen(toDated(row), nowMs)) ended.push(textIn(row, 'id'))
      // The status depends on the time, so it is computed here and not by the database.
      if (status !== undefined && approvalStatusAt(toDated(row), nowMs) !== status) continue
      const whole = selectWhole.get(numberIn(row, 'seq'))
      if (whole) found.push(approvalAt(toApproval(whole), nowMs))
    }
    return { found, ended }
  }
}
