import { type ChainEnd, createRecordTree, type RecordTree, type RecordTreeState } from '@toolgate/core/audit'
import { readOwnJson } from '@toolgate/values/json'
import { ConfigError } from '@toolgate/core'
import { numberIn, type Row, textIn } from '../../rows.ts'
import { type PostgresDatabase, statement } from '../database.ts'

/** One start of one replica. It has a chain of its own. */
export interface ChainName {
  readonly replica: string
  /** An id that differs at each start. */
  readonly incarnation: string
}

/** Sealed records that continue a chain. */
export interface SealedGroup {
  readonly after: ChainEnd
  readonly end: ChainEnd
  /** The root of the tree over the whole chain. */
  readonly root: string
  /** The number of the newest record on the replica's own disk. Absent if the replica does not write there. */
  readonly onDisk?: number
  /** The tree after the group, stored for a process that continues the chain. */
  readonly tree?: RecordTreeState
  readonly records: readonly { readonly atMs: number; readonly event: string; readonly text: string }[]
  /** The sealed inputs of some of the records. */
  readonly boxes?: readonly KeptBox[] | undefined
}

/** A sealed input, by the number of its record. */
export interface KeptBox {
  readonly seq: number
  readonly atMs: number
  readonly box: string
}

/** A chain of the shared audit, to append to. */
export interface ChainStore {
  readonly id: number
  /**
   * Appends records. May be called again with the same records. Returns the number of a record that exists with another
   * content.
   */
  append(group: SealedGroup): Promise<number | undefined>
  /** Ends the chain: nothing follows. */
  leave(): Promise<void>
}

/** Begins a chain. @throws {ConfigError} if a chain of this name exists */
export async function beginChain(
  db: PostgresDatabase,
  { replica, incarnation }: ChainName,
  { end, root, onDisk }: Pick<SealedGroup, 'end' | 'root' | 'onDisk'>,
): Promise<ChainStore> {
  const values = [replica, incarnation, end.seq, end.head, root, onDisk ?? null]
  const [joined] = await db.query(statementsFor(db.schema).join, values)
  if (joined === undefined)
    throw new ConfigError('', `the replica "${replica}" has begun the chain ${incarnation} of the audit before`)
  return storeOf(db, numberIn(joined, 'id'))
}

/** A chain that an earlier process has begun. */
export interface KeptChain {
  readonly store: ChainStore
  readonly hasLeft: boolean
  readonly end: ChainEnd
  /** The tree over the records in the database. */
  readonly tree: RecordTree
}

const PAGE = 5000

/** Returns the chain of an earlier start, to continue it, or `undefined` if the database has none. */
export async function findChain(db: PostgresDatabase, incarnation: string): Promise<KeptChain | undefined> {
  const sql = statementsFor(db.schema)
  const [row] = await db.query(sql.find, [incarnation])
  if (row === undefined) return undefined
  const [id, end] = [numberIn(row, 'id'), { seq: numberIn(row, 'seq'), head: textIn(row, 'head') }]
  const tree = createRecordTree(keptTree(row))
  while (tree.size < end.seq) {
    const hashes = await db.query(sql.hashes, [id, tree.size, Math.min(tree.size + PAGE, end.seq)])
    for (const hash of hashes) tree.add(textIn(hash, 'hash'))
    if (hashes.length === 0) throw new Error(`records of the chain ${incarnation} are missing in the database`)
  }
  return { store: storeOf(db, id), hasLeft: row['status'] === 'left', end, tree }
}

/** Returns the stored tree. Retention may have removed records after it was stored. */
function keptTree(row: Row): RecordTreeState | undefined {
  const kept = [row['tree'], row['pruned_tree']].flatMap((text) =>
    typeof text === 'string' ? [readOwnJson(text) as RecordTreeState] : [],
  )
  return kept.toSorted((a, b) => b.size - a.size)[0]
}

function storeOf(db: PostgresDatabase, id: number): ChainStore {
  const sql = statementsFor(db.schema)
  return {
    id,
    async append({ after, end: { head }, root, records, onDisk, tree, boxes = [] }) {
      const values = [
        id,
        after.seq,
        after.head,
        head,
        root,
        toLines(records.map(({ atMs }) => atMs)),
        toLines(records.map(({ event }) => event)),
        toLines(records.map(({ text }) => text)),
        onDisk ?? null,
        tree === undefined ? null : JSON.stringify(tree),
      ]
      const ofBoxes = [boxes.map(({ seq }) => seq), boxes.map(({ atMs }) => atMs), boxes.map(({ box }) => box)]
      const [row = {}] = await (boxes.length === 0
        ? db.query(sql.append, values)
        : db.query(sql.appendInputs, [...values, ...ofBoxes.map(toLines)]))
      return row['other'] === null ? undefined : numberIn(row, 'other')
    },
    async leave() {
      await db.query(sql.leave, [id])
    },
  }
}

/**
 * Returns an array as lines, because the driver would quote each element. Records are JSON in one line, and event names
 * are words.
 */
const toLines = (values: readonly (string | number)[]): string => values.join('\n')
const linesOf = (parameter: string): string => `string_to_array(${parameter}, E'\\n')`

function statementsFor(schema: string) {
  const chains = `${schema}.audit_chains`
  return {
    join: statement(`
      INSERT INTO ${chains} (replica, incarnation, seq, head, root, local_seq, status, renewed_at)
      VALUES ($1, $2, $3, $4, $5, $6, 'live', clock_timestamp()) ON CONFLICT (replica, incarnation) DO NOTHING RETURNING id`),
    append: statement(`
      SELECT ${schema}.append_audit($1, $2, $3, $4, $5, ${linesOf('$6')}::bigint[], ${linesOf('$7')}, ${linesOf('$8')}, $9, $10)
        AS other`),
    appendInputs: statement(`
      SELECT ${schema}.append_audit_inputs($1, $2, $3, $4, $5, ${linesOf('$6')}::bigint[], ${linesOf('$7')}, ${linesOf('$8')},
        $9, $10, ${linesOf('$11')}::bigint[], ${linesOf('$12')}::bigint[], ${linesOf('$13')}) AS other`),
    find: statement(`SELECT id, seq, head, status, tree, pruned_tree FROM ${chains} WHERE incarnation = $1`),
    // A quoted field name occurs nowhere else in JSON.
    hashes: statement(`
      SELECT substring(record FROM strpos(record, ',"hash":"') + 9 FOR 64) AS hash FROM ${schema}.audit
      WHERE chain = $1 AND seq > $2 AND seq <= $3 ORDER BY seq`),
    leave: statement(`UPDATE ${chains} SET status = 'left', renewed_at = clock_timestamp() WHERE id = $1`),
  }
}
