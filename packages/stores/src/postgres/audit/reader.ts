import { setTimeout as delay } from 'node:timers/promises'
import {
  type AuditCounter,
  type AuditCountQuery,
  type AuditCounts,
  type AuditExporter,
  type AuditExportQuery,
  type AuditQuery,
  type AuditReader,
  type AuditRecord,
  type InputBoxes,
  checkAuditQuery,
  checkCountQuery,
  type CheckedAuditQuery,
  createOutcomeTally,
  eventOfOutcome,
  outcomeOfRecord,
} from '@toolgate/core/audit'
import { parseRecord } from '@toolgate/core/internal'
import { fieldText, numberIn, type Row, textIn } from '../../rows.ts'
import { type PostgresDatabase, statement } from '../database.ts'

/** Reads the records of all replicas. `seq` is the position in the whole audit, in order of arrival. */
export interface SharedAuditReader extends AuditReader, AuditExporter, AuditCounter, InputBoxes {
  query(query: AuditQuery): Promise<readonly AuditRecord[]>
}

const PAGE = 500
const COUNT_PART = 200_000
/** The longest wait of a read for earlier records of others, in milliseconds. */
const SEEN_MS = 2000
const POLL_MS = 5

/** Returns a reader. It sees every record that the chain `own` had at the time of the question. */
export function sharedReader(db: PostgresDatabase, own?: number): SharedAuditReader {
  const sql = statementsFor(db.schema)

  /** Returns a position up to which every record is committed or never will be. */
  async function horizon(): Promise<number> {
    const deadlineMs = performance.now() + SEEN_MS
    for (let least: number | undefined; ;) {
      const [row = {}] = await db.query(sql.horizon, [own ?? null])
      const position = numberIn(row, 'position')
      least ??= numberIn(row, 'own')
      if (position >= least || performance.now() >= deadlineMs) return position
      await delay(POLL_MS)
    }
  }

  async function select(query: CheckedAuditQuery, order: 'newest' | 'oldest', upTo: number) {
    const { afterSeq = 0, beforeSeq = upTo + 1, limit } = query
    const range = [afterSeq, Math.min(beforeSeq, upTo + 1)]
    return (await db.query(sql[order], [...range, ...filtersOf(query), limit])).map(toRecord)
  }

  async function count(query: AuditCountQuery): Promise<AuditCounts> {
    const { since, until, bucketMs } = query
    const newest = await horizon()
    const tally = createOutcomeTally(query)
    const [span = {}] = await db.query(sql.span, [newest, since, until])
    const last = numberIn(span, 'last')
    for (let after = numberIn(span, 'first') - 1; after < last; after += COUNT_PART) {
      const range = [after, Math.min(after + COUNT_PART, last) + 1]
      for (const row of await db.query(sql.count, [...range, ...filtersOf(query), bucketMs])) {
        const event = textIn(row, 'event') as AuditRecord['event']
        const outcome = outcomeOfRecord({ event, ...(row['failed'] === true ? { is_error: true } : {}) })
        if (outcome !== undefined)
          tally.add(since + numberIn(row, 'bucket') * bucketMs, outcome, numberIn(row, 'count'))
      }
    }
    return tally.counts(newest)
  }

  async function* exportRecords(query: AuditExportQuery = {}): AsyncGenerator<AuditRecord> {
    const { afterSeq: from = 0, ...rest } = checkAuditQuery({ ...query, limit: PAGE })
    const upTo = await horizon()
    for (let afterSeq = from; ;) {
      const records = await select({ ...rest, afterSeq }, 'oldest', upTo)
      yield* records
      if (records.length < PAGE) return
      afterSeq = records.at(-1)?.seq ?? upTo
    }
  }

  return {
    async query(query) {
      const checked = checkAuditQuery(query)
      return select(checked, 'newest', await horizon())
    },
    exportRecords,
    countOutcomes: async (query) => count(checkCountQuery(query)),
    async inputBoxes(records) {
      const rows = await db.query(sql.boxes, [records.map(({ seq }) => seq)])
      const boxes = new Map(rows.map((row) => [numberIn(row, 'position'), textIn(row, 'box')]))
      return records.map(({ seq }) => boxes.get(seq))
    },
  }
}

function fieldOf(name: keyof AuditRecord, value: string | undefined): string | null {
  return value === undefined ? null : fieldText(name, value)
}

/** Returns the parameters 3 to 13 of the statements below. */
function filtersOf(query: AuditExportQuery): readonly unknown[] {
  const { tool, user, session, tenant, call, run, event, outcome, since, until } = query
  return [
    fieldOf('tool', tool),
    fieldOf('user_id', user),
    fieldOf('session_id', session),
    fieldOf('tenant', tenant),
    fieldOf('tool_call_id', call),
    event ?? null,
    outcome === undefined ? null : eventOfOutcome(outcome),
    outcome === 'failed' ? true : outcome === 'done' ? false : null,
    since ?? null,
    until ?? null,
    fieldOf('run_id', run),
  ]
}

const HAS_FAILED = `(strpos(record, ',"error":"') > 0 OR strpos(record, ',"is_error":true') > 0)`
const HAS_TEXT = (parameter: number) => `($${parameter}::text IS NULL OR strpos(record, $${parameter}) > 0)`
const MATCHES = `position > $1 AND position < $2
  AND ($8::text IS NULL OR event = $8) AND ($9::text IS NULL OR event = $9)
  AND ($11::float8 IS NULL OR at >= $11) AND ($12::float8 IS NULL OR at < $12)
  AND ${[3, 4, 5, 6, 7, 13].map(HAS_TEXT).join(' AND ')}
  AND ($10::boolean IS NULL OR $10 = ${HAS_FAILED})`

function statementsFor(schema: string) {
  const select = (order: 'ASC' | 'DESC') =>
    statement(`
      SELECT found.*, chains.replica, chains.incarnation FROM (
        SELECT chain, seq, position, record FROM ${schema}.audit WHERE ${MATCHES} ORDER BY position ${order} LIMIT $14
      ) AS found JOIN ${schema}.audit_chains AS chains ON chains.id = found.chain ORDER BY position ${order}`)
  return {
    horizon: statement(`
      SELECT ${schema}.audit_horizon() AS position,
        coalesce((SELECT position FROM ${schema}.audit WHERE chain = $1 ORDER BY seq DESC LIMIT 1), 0) AS own`),
    newest: select('DESC'),
    oldest: select('ASC'),
    boxes: statement(`
      SELECT position, box FROM ${schema}.audit AS kept JOIN ${schema}.audit_inputs USING (chain, seq)
      WHERE position = ANY ($1::bigint[])`),
    span: statement(`
      SELECT coalesce(min(position), 1) AS first, coalesce(max(position), 0) AS last FROM ${schema}.audit
      WHERE position <= $1 AND at >= $2 AND at < $3`),
    count: statement(`
      SELECT floor((at - $11::float8) / $14) AS bucket, event, event = 'tool_result' AND ${HAS_FAILED} AS failed,
        count(*) AS count
      FROM ${schema}.audit WHERE ${MATCHES} GROUP BY 1, 2, 3`),
  }
}

function toRecord(row: Row): AuditRecord {
  const record = parseRecord(textIn(row, 'record'))
  if (record === undefined) throw new Error('a row does not hold a record')
  return {
    ...record,
    seq: numberIn(row, 'position'),
    replica: textIn(row, 'replica'),
    incarnation: textIn(row, 'incarnation'),
    chain_seq: numberIn(row, 'seq'),
  }
}
