import type { ChainEnd } from '@toolgate/core/audit'
import { ConfigError } from '@toolgate/core'
import { numberIn } from '../../rows.ts'
import { type PostgresDatabase, statement } from '../database.ts'

/** One start of one replica, which has a chain of its own. */
export interface ChainName {
  readonly replica: string
  /** Another one at each start. */
  readonly incarnation: string
}

/** Sealed records that continue a chain. */
export interface SealedGroup {
  readonly after: ChainEnd
  readonly end: ChainEnd
  /** The root of the tree over the whole chain. */
  readonly root: string
  readonly records: readonly { readonly atMs: number; readonly event: string; readonly text: string }[]
}

/** A chain of the shared audit, to append to. */
export interface ChainStore {
  readonly id: number
  /** Appends records. May be called again with the same ones. Returns the number of one that is there with another content. */
  append(group: SealedGroup): Promise<number | undefined>
  /** Says that nothing follows. */
  leave(): Promise<void>
}

/** Begins a chain. @throws {ConfigError} if there is one with its name */
export async function beginChain(
  db: PostgresDatabase,
  { replica, incarnation }: ChainName,
  { end, root }: { readonly end: ChainEnd; readonly root: string },
): Promise<ChainStore> {
  const sql = statementsFor(db.schema)
  const [joined] = await db.query(sql.join, [replica, incarnation, end.seq, end.head, root])
  if (joined === undefined)
    throw new ConfigError('', `the replica "${replica}" has begun the chain ${incarnation} of the audit before`)
  const id = numberIn(joined, 'id')
  return {
    id,
    async append({ after, end: { head }, root: newRoot, records }) {
      const [row = {}] = await db.query(sql.append, [
        id,
        after.seq,
        after.head,
        head,
        newRoot,
        records.map(({ atMs }) => atMs),
        records.map(({ event }) => event),
        records.map(({ text }) => text),
      ])
      return row['other'] === null ? undefined : numberIn(row, 'other')
    },
    async leave() {
      await db.query(sql.leave, [id])
    },
  }
}

function statementsFor(schema: string) {
  const chains = `${schema}.audit_chains`
  return {
    join: statement(`
      INSERT INTO ${chains} (replica, incarnation, seq, head, root, status, renewed_at)
      VALUES ($1, $2, $3, $4, $5, 'live', clock_timestamp()) ON CONFLICT (replica, incarnation) DO NOTHING RETURNING id`),
    append: statement(`SELECT ${schema}.append_audit($1, $2, $3, $4, $5, $6, $7, $8) AS other`),
    leave: statement(`UPDATE ${chains} SET status = 'left', renewed_at = clock_timestamp() WHERE id = $1`),
  }
}
