import type { KeptChain, KeptRecord, AuditSource } from '../../shared-audit/source.ts'
import { numberIn, type Row, textIn } from '../../rows.ts'
import { type PostgresDatabase, type Statement, statement } from '../database.ts'

const PAGE = 2000
/** The start of all row numbers. A tampered row may have a number below 0. */
const BEFORE_ALL = Number.MIN_SAFE_INTEGER

/** Returns the audit in a database, to verify it. */
export function postgresSource(db: PostgresDatabase): AuditSource {
  const sql = statementsFor(db.schema)

  async function chains(): Promise<readonly KeptChain[]> {
    const rows = await db.query(sql.chains)
    return rows.map((row) => ({
      id: numberIn(row, 'id'),
      replica: textIn(row, 'replica'),
      incarnation: textIn(row, 'incarnation'),
      seq: numberIn(row, 'seq'),
      ...(row['local_seq'] !== null && { onDisk: numberIn(row, 'local_seq') }),
      ...(numberIn(row, 'pruned_seq') > 0 && { prunedSeq: numberIn(row, 'pruned_seq') }),
    }))
  }

  return {
    async readLog() {
      const [kept = {}] = await db.query(sql.log)
      return { size: numberIn(kept, 'size'), verifiers: kept['verifiers'] as readonly string[] }
    },
    notes: () =>
      pagesOf(db, { of: sql.notes, key: 'size', values: [] }, (row) => ({
        size: numberIn(row, 'size'),
        note: textIn(row, 'note'),
      })),
    leaves: (from, to) =>
      pagesOf(db, { of: sql.leaves, key: 'index', after: from - 1, values: [to] }, (row) => ({
        index: numberIn(row, 'index'),
        leaf: textIn(row, 'leaf'),
      })),
    chains,
    records: ({ id }: KeptChain) => pagesOf(db, { of: sql.records, key: 'seq', values: [id] }, toRecord),
    async boxes({ id }, seqs) {
      const rows = await db.query(sql.boxes, [id, seqs])
      return new Map(rows.map((row) => [numberIn(row, 'seq'), textIn(row, 'box')]))
    },
    async inputsRemoved() {
      const rows = await db.query(sql.inputsRemoved)
      return rows.map((row) => textIn(row, 'record'))
    },
    hashes: ({ id }, after, upTo) =>
      pagesOf(db, { of: sql.hashes, key: 'seq', after, values: [id, upTo] }, (row) => textIn(row, 'hash')),
    async find(sought) {
      const names = new Map((await chains()).map((chain) => [chain.id, chain]))
      const [of, value] =
        'call' in sought ? [sql.ofCall, `"tool_call_id":${JSON.stringify(sought.call)}`] : [sql.atPlace, sought.place]
      const pages = await Array.fromAsync(
        pagesOf(db, { of, key: 'position', values: [value] }, (row) => ({
          chain: names.get(numberIn(row, 'chain')),
          text: textIn(row, 'record'),
        })),
      )
      return pages.flat().flatMap(({ chain, text }) => (chain === undefined ? [] : [{ chain, text }]))
    },
    async nowMs() {
      const [row = {}] = await db.query(sql.now)
      return numberIn(row, 'now')
    },
  }
}

interface Pages {
  /** The statement. Its parameters are the key after which a page begins, the number of rows, and `values`. */
  readonly of: Statement
  readonly key: string
  readonly after?: number
  readonly values: readonly unknown[]
}

/** Returns the rows of a statement that is sorted by its key. */
async function* pagesOf<T>(
  db: PostgresDatabase,
  { of, key, after = BEFORE_ALL, values }: Pages,
  toItem: (row: Row) => T,
): AsyncGenerator<readonly T[]> {
  for (let last = after; ;) {
    const rows = await db.query(of, [last, PAGE, ...values])
    if (rows.length > 0) yield rows.map(toItem)
    if (rows.length < PAGE) return
    last = numberIn(rows.at(-1) ?? {}, key)
  }
}

function toRecord(row: Row): KeptRecord {
  const text = textIn(row, 'record')
  const column = otherColumn(row, text)
  if (column === undefined) return { text }
  return { text, problem: `The column ${column} of its row is not what the record says.` }
}

/** Returns a column that differs from its record. Counts use the columns, so a changed one would hide a record. */
function otherColumn(row: Row, text: string): string | undefined {
  if (!text.includes(`,"seq":${numberIn(row, 'seq')},`)) return 'seq'
  if (!text.includes(`"event":${JSON.stringify(row['event'])}`)) return 'event'
  const at = text.indexOf(',"ts":"') + ',"ts":"'.length
  return Date.parse(text.slice(at, text.indexOf('"', at))) === numberIn(row, 'at') ? undefined : 'at'
}

function statementsFor(schema: string) {
  return {
    log: statement(`SELECT size, verifiers FROM ${schema}.audit_log`),
    notes: statement(`SELECT size, note FROM ${schema}.audit_notes WHERE size > $1 ORDER BY size LIMIT $2`),
    leaves: statement(
      `SELECT index, leaf FROM ${schema}.audit_leaves WHERE index > $1 AND index < $3 ORDER BY index LIMIT $2`,
    ),
    chains: statement(
      `SELECT id, replica, incarnation, seq, local_seq, pruned_seq FROM ${schema}.audit_chains ORDER BY id`,
    ),
    records: statement(
      `SELECT seq, at, event, record FROM ${schema}.audit WHERE seq > $1 AND chain = $3 ORDER BY seq LIMIT $2`,
    ),
    boxes: statement(`SELECT seq, box FROM ${schema}.audit_inputs WHERE chain = $1 AND seq = ANY ($2::bigint[])`),
    inputsRemoved: statement(`
      SELECT record FROM ${schema}.audit WHERE event = 'inputs_pruned' ORDER BY position DESC LIMIT 1`),
    hashes: statement(`
      SELECT seq, substr(record, strpos(record, ',"hash":"') + ${',"hash":"'.length}, 64) AS hash
      FROM ${schema}.audit WHERE seq > $1 AND chain = $3 AND seq <= $4 ORDER BY seq LIMIT $2`),
    // A quoted field name occurs nowhere else in JSON.
    ofCall: statement(`
      SELECT position, chain, record FROM ${schema}.audit WHERE position > $1 AND strpos(record, $3) > 0
      ORDER BY position LIMIT $2`),
    atPlace: statement(`
      SELECT position, chain, record FROM ${schema}.audit WHERE position > $1 AND position = $3 ORDER BY position LIMIT $2`),
    now: statement('SELECT extract(epoch FROM clock_timestamp()) * 1000 AS now'),
  }
}
