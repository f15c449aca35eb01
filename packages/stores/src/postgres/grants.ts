import { createHash } from 'node:crypto'
import type { Grant, GrantStore } from '@toolgate/core/stores'
import {
  CLOCK_TOLERANCE_MS,
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
import { textOf } from '../state/approval-rows.ts'
import {
  DEFAULT_LIMIT,
  GRANT_HISTORY_MS,
  holderKey,
  revocationText,
  storedStatus,
  toGrant,
  toGrantRow,
} from '../state/grant-rows.ts'
import { tried } from '../state-rows.ts'
import { type PostgresDatabase, statement } from './database.ts'

/** Returns the table of grants, for the migrations. One row has all its uses, so one lock decides all races for it. */
export function grantTables(schema: string): string {
  return `
  CREATE TABLE ${schema}.grants (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text NOT NULL UNIQUE,
    holder bytea NOT NULL,
    tenant text,
    "user" text,
    tool text NOT NULL,
    status text NOT NULL,
    uses integer NOT NULL,
    spends text[] NOT NULL DEFAULT '{}',
    granted_at double precision NOT NULL,
    expires_at double precision NOT NULL,
    revocation text,
    body text NOT NULL
  ) WITH (fillfactor = 50);
  CREATE INDEX grants_holder ON ${schema}.grants (holder, tool) WHERE status = 'live';
  CREATE INDEX grants_expiry ON ${schema}.grants (expires_at);
  `
}

/**
 * Returns the grants in the database. All replicas together count their uses: each change is one statement, which applies
 * only while the grant is live.
 */
export function grantsIn(db: PostgresDatabase): GrantStore {
  const sql = statementsFor(db.schema)

  /** Our ids never contain a NUL, which the server rejects. */
  async function read(id: string): Promise<readonly Row[]> {
    return id.includes('\0') ? [] : db.query(sql.selectById, [id])
  }

  /** Stores the end of grants that were found to have reached it, before anything else uses them. */
  async function see(rows: readonly Row[], nowMs: number): Promise<readonly Grant[]> {
    if (rows.some((row) => isOver(row, nowMs))) await tried(() => db.query(sql.setExpired, [nowMs]))
    return rows.map((row) => toGrant(row, nowMs))
  }

  async function liveOf(rows: readonly Row[], nowMs: number): Promise<readonly Grant[]> {
    return (await see(rows, nowMs)).filter(({ status }) => status === 'live')
  }

  async function makeRoom(nowMs: number): Promise<void> {
    await db.query(sql.removeOld, [nowMs - GRANT_HISTORY_MS])
    const [row = {}] = await db.query(sql.count)
    if (numberIn(row, 'count') < MAX_GRANTS) return
    if ((await db.query(sql.removeEnded, [nowMs])).length === 0) throw tooManyGrants()
  }

  return {
    async create(grant, nowMs) {
      const { id, holder, texts, numbers, body } = toGrantRow(grant)
      const key = digestOf(holder)
      checkLiveGrants((await liveOf(await db.query(sql.selectOfHolder, [key]), nowMs)).length)
      await makeRoom(nowMs)
      const [row] = await db.query(sql.insert, [id, key, ...texts, ...numbers, body])
      if (!row) throw grantedBefore(id)
      return toGrant(row, nowMs)
    },
    get: async (id, nowMs) => (await see(await read(id), nowMs))[0],
    find: async ({ tool, ...of }, nowMs) =>
      liveOf(await db.query(sql.selectOfTool, [digestOf(holderKey(of)), JSON.stringify(tool)]), nowMs),
    async list(filter, nowMs) {
      checkGrantFilter(filter)
      const { before, tenant, user, tool, limit = DEFAULT_LIMIT } = filter
      if (before?.includes('\0')) return []
      const rows = await db.query(sql.selectAll, [before ?? null, ...[tenant, user, tool].map(textOf)])
      return (await see(rows, nowMs)).filter((grant) => matchesGrant(grant, filter)).slice(0, limit)
    },
    async take(id, nowMs, spend) {
      if (id.includes('\0')) return false
      const [taken] = await db.query(sql.take, [id, spend, nowMs, nowMs + CLOCK_TOLERANCE_MS])
      if (taken) return true
      const [row] = await read(id)
      await see(row ? [row] : [], nowMs)
      return (await db.query(sql.hasUse, [id, spend])).length === 1
    },
    async giveBack(id, spend) {
      if (!id.includes('\0')) await db.query(sql.giveBack, [id, spend])
    },
    async revoke(id, revocation) {
      const [known] = await see(await read(id), revocation.atMs)
      const text = revocationText(revokedGrant(known, id, revocation))
      const [row] = await db.query(sql.revoke, [id, text, revocation.atMs])
      // Another process was first.
      if (!row) return revokedGrant((await see(await read(id), revocation.atMs))[0], id, revocation)
      return toGrant(row, revocation.atMs)
    },
  }
}

function isOver(row: Row, nowMs: number): boolean {
  return isGrantOver({ status: storedStatus(row), expiresAt: numberIn(row, 'expires_at') }, nowMs)
}

function statementsFor(schema: string) {
  const grants = `${schema}.grants`
  const all = '*, cardinality(spends) AS used'
  return {
    selectById: statement(`SELECT ${all} FROM ${grants} WHERE id = $1`),
    selectOfHolder: statement(`SELECT ${all} FROM ${grants} WHERE holder = $1 AND status = 'live'`),
    selectOfTool: statement(
      `SELECT ${all} FROM ${grants} WHERE holder = $1 AND tool = $2 AND status = 'live' ORDER BY expires_at, seq`,
    ),
    selectAll: statement(`
      SELECT ${all} FROM ${grants} WHERE ($1::text IS NULL OR seq < (SELECT seq FROM ${grants} WHERE id = $1))
        AND ($2::text IS NULL OR tenant = $2) AND ($3::text IS NULL OR "user" = $3) AND ($4::text IS NULL OR tool = $4)
      ORDER BY seq DESC`),
    insert: statement(`
      INSERT INTO ${grants} (id, holder, tenant, "user", tool, status, uses, granted_at, expires_at, body)
      VALUES ($1, $2, $3, $4, $5, 'live', $6, $7, $8, $9) ON CONFLICT (id) DO NOTHING RETURNING ${all}`),
    take: statement(`
      UPDATE ${grants} SET spends = array_append(spends, $2)
      WHERE id = $1 AND status = 'live' AND cardinality(spends) < uses AND expires_at > $3 AND granted_at <= $4
        AND NOT ($2 = ANY (spends)) RETURNING 1`),
    hasUse: statement(`SELECT 1 FROM ${grants} WHERE id = $1 AND $2 = ANY (spends)`),
    giveBack: statement(`
      UPDATE ${grants} SET spends = array_remove(spends, $2) WHERE id = $1 AND $2 = ANY (spends)`),
    revoke: statement(`
      UPDATE ${grants} SET status = 'revoked', revocation = $2
      WHERE id = $1 AND status = 'live' AND expires_at > $3 RETURNING ${all}`),
    setExpired: statement(`UPDATE ${grants} SET status = 'expired' WHERE status = 'live' AND expires_at <= $1`),
    count: statement(`SELECT count(*) AS count FROM ${grants}`),
    removeOld: statement(`DELETE FROM ${grants} WHERE expires_at <= $1`),
    removeEnded: statement(`
      DELETE FROM ${grants} WHERE seq = (SELECT min(seq) FROM ${grants}
        WHERE status <> 'live' OR expires_at <= $1 OR cardinality(spends) >= uses) RETURNING 1`),
  }
}

/** Returns a digest. It has one length for any text, so that it can be indexed. */
function digestOf(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
