import { setTimeout as delay } from 'node:timers/promises'
import { createMerkleTree, createNoteVerifier, type TreeHead } from '@toolgate/core/audit'
import { unsafe } from '../../retention.ts'
import { textIn } from '../../rows.ts'
import { toHex } from '../../shared-audit/source.ts'
import { type PostgresDatabase, statement } from '../database.ts'
import { postgresSource } from './source.ts'

/** While a key is replaced, the newest checkpoints may be of another one. */
const NOTES = 100
/** Between pages, so that the commits of calls do not wait for them. */
const PAUSE_MS = 10

/**
 * Whether a key has signed checkpoints, which leaves of the log, by their indexes, are then compared with: the whole log is read up
 * to the newest of them.
 *
 * @throws if they are not those that it has signed
 */
export async function areSigned(
  db: PostgresDatabase,
  verifierKey: string,
  leaves: ReadonlyMap<number, string>,
): Promise<boolean> {
  const head = await newestHead(db, verifierKey)
  if (head === undefined) return false
  const tree = createMerkleTree()
  const left = new Map(leaves)
  for await (const page of postgresSource(db).leaves(0, head.size)) {
    for (const { index, leaf } of page) {
      if (index === tree.size && left.get(index) === leaf) left.delete(index)
      tree.add(toHex(leaf))
    }
    await delay(PAUSE_MS)
  }
  if (left.size > 0 || tree.root() !== head.root)
    throw unsafe('leaves of the log are not those that a checkpoint has signed')
  return true
}

async function newestHead(db: PostgresDatabase, verifierKey: string): Promise<TreeHead | undefined> {
  const verifier = createNoteVerifier(verifierKey)
  const rows = await db.query(statement(`SELECT note FROM ${db.schema}.audit_notes ORDER BY size DESC LIMIT ${NOTES}`))
  for (const row of rows) {
    const head = verifier.open(textIn(row, 'note'))
    if (head !== undefined) return head
  }
  return undefined
}
