import type { Grant, GrantStore } from '@toolgate/core/stores'
import {
  checkGrantFilter,
  checkLiveGrants,
  grantedBefore,
  isGrantOver,
  matchesGrant,
  MAX_GRANTS,
  revokedGrant,
  tooManyGrants,
} from '@toolgate/core/stores'
import { numberIn, type Row } from '../rows.ts'
import { tried } from '../state-rows.ts'
import { textOf } from './approval-rows.ts'
import type { StoresDatabase } from './database.ts'
import {
  DEFAULT_LIMIT,
  GRANT_HISTORY_MS,
  holderKey,
  revocationText,
  storedStatus,
  toGrant,
  toGrantRow,
} from './grant-rows.ts'

/** Returns the grants in the database. They survive the process, and all processes together count their uses. */
export function grantsIn(db: StoresDatabase): GrantStore {
  const sql = statementsIn(db)
  const find = (id: string, nowMs: number): Grant | undefined => {
    const row = sql.selectById.get(id)
    return row && toGrant(row, nowMs)
  }
  /** Stores the end of grants that were found to have reached it, before anything else uses them. */
  const markEnds = (rows: readonly Row[], nowMs: number): void => {
    if (rows.some((row) => isOver(row, nowMs))) void tried(() => db.write(() => sql.setExpired.run(nowMs)))
  }
  const see = (rows: readonly Row[], nowMs: number): readonly Grant[] => {
    markEnds(rows, nowMs)
    return rows.map((row) => toGrant(row, nowMs))
  }
  const liveOf = (rows: readonly Row[], nowMs: number) =>
    rows.map((row) => toGrant(row, nowMs)).filter(({ status }) => status === 'live')
  const makeRoom = (nowMs: number): void => {
    sql.removeOld.run(nowMs - GRANT_HISTORY_MS)
    if (numberIn(sql.count.get() ?? {}, 'count') >= MAX_GRANTS && sql.removeEnded.run(nowMs).changes === 0)
      throw tooManyGrants()
    sql.removeUses.run()
  }
  return {
    create: (grant, nowMs) =>
      db.write(() => {
        const { id, holder, texts, numbers, body } = toGrantRow(grant)
        if (sql.selectById.get(id)) throw grantedBefore(id)
        checkLiveGrants(liveOf(sql.selectOfHolder.all(holder), nowMs).length)
        makeRoom(nowMs)
        return toGrant(sql.insert.get(id, holder, ...texts, ...numbers, body) ?? {}, nowMs)
      }),
    get: (id, nowMs) =>
      see(
        db.read(() => [sql.selectById.get(id) ?? []].flat()),
        nowMs,
      )[0],
    find({ tool, ...of }, nowMs) {
      const rows = db.read(() => sql.selectOfTool.all(holderKey(of), JSON.stringify(tool)))
      return see(rows, nowMs).filter(({ status }) => status === 'live')
    },
    list(filter, nowMs) {
      checkGrantFilter(filter)
      const { before = null, tenant, user, tool, limit = DEFAULT_LIMIT } = filter
      const rows = db.read(() => sql.selectAll.all(before, textOf(tenant), textOf(user), textOf(tool)))
      return see(rows, nowMs)
        .filter((grant) => matchesGrant(grant, filter))
        .slice(0, limit)
    },
    take(id, nowMs, spend) {
      markEnds([sql.selectById.get(id) ?? []].flat(), nowMs)
      return db.write(() => {
        const grant = find(id, nowMs)
        if (grant && sql.hasUse.get(id, spend)) return true
        if (grant?.status !== 'live') return false
        sql.addUse.run(id, spend)
        sql.countUses.run(id)
        return true
      })
    },
    giveBack: (id, spend) =>
      db.write(() => {
        if (sql.removeUse.run(id, spend).changes > 0) sql.countUses.run(id)
      }),
    revoke(id, revocation) {
      markEnds([sql.selectById.get(id) ?? []].flat(), revocation.atMs)
      return db.write(() => {
        const revoked = revokedGrant(find(id, revocation.atMs), id, revocation)
        sql.revoke.run(revocationText(revoked), id)
        return revoked
      })
    },
  }
}

function isOver(row: Row, nowMs: number): boolean {
  return isGrantOver({ status: storedStatus(row), expiresAt: numberIn(row, 'expires_at') }, nowMs)
}

function statementsIn(db: StoresDatabase) {
  return {
    selectById: db.prepare('SELECT * FROM grants WHERE id = ?'),
    selectOfHolder: db.prepare("SELECT * FROM grants WHERE holder = ? AND status = 'live'"),
    selectOfTool: db.prepare(
      "SELECT * FROM grants WHERE holder = ? AND tool = ? AND status = 'live' ORDER BY expires_at, seq",
    ),
    selectAll: db.prepare(
      'SELECT * FROM grants WHERE (?1 IS NULL OR seq < (SELECT seq FROM grants WHERE id = ?1)) ' +
        'AND (?2 IS NULL OR tenant = ?2) AND (?3 IS NULL OR user = ?3) AND (?4 IS NULL OR tool = ?4) ORDER BY seq DESC',
    ),
    insert: db.prepare(
      'INSERT INTO grants (id, holder, tenant, user, tool, status, uses, used, granted_at, expires_at, body) ' +
        "VALUES (?, ?, ?, ?, ?, 'live', ?, 0, ?, ?, ?) RETURNING *",
    ),
    hasUse: db.prepare('SELECT 1 FROM grant_uses WHERE grant_id = ? AND spend = ?'),
    addUse: db.prepare('INSERT INTO grant_uses (grant_id, spend) VALUES (?, ?)'),
    removeUse: db.prepare('DELETE FROM grant_uses WHERE grant_id = ? AND spend = ?'),
    countUses: db.prepare(
      'UPDATE grants SET used = (SELECT count(*) FROM grant_uses WHERE grant_id = ?1) WHERE id = ?1',
    ),
    revoke: db.prepare("UPDATE grants SET status = 'revoked', revocation = ? WHERE id = ?"),
    setExpired: db.prepare("UPDATE grants SET status = 'expired' WHERE status = 'live' AND expires_at <= ?"),
    count: db.prepare('SELECT count(*) AS count FROM grants'),
    removeOld: db.prepare('DELETE FROM grants WHERE expires_at <= ?'),
    removeEnded: db.prepare(
      'DELETE FROM grants WHERE seq = (SELECT min(seq) FROM grants ' +
        "WHERE status <> 'live' OR expires_at <= ? OR used >= uses)",
    ),
    removeUses: db.prepare('DELETE FROM grant_uses WHERE grant_id NOT IN (SELECT id FROM grants)'),
  }
}
