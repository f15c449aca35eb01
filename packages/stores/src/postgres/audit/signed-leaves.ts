import { setTimeout as delay } from 'node:timers/promises'
import { createMerkleTree, createNoteVerifier, type TreeHead } from '@toolgate/core/audit'
import { unsafe } from '../../retention.ts'
import { textIn } from '../../rows.ts'
import { toHex } from '../../shared-audit/source.ts'
import { type PostgresDatabase, statement } from '../database.ts'
import { postgresSource } from './source.ts'

/** The number of notes to read. While a key is being replaced, the newest checkpoints may have another key. */
const NOTES = 100
/** The pause between pages, in milliseconds, so that the commits of calls do not wait for them. */
const PAUSE_MS = 10

/**
 * Checks that a key has signed checkpoints, and then compares these leaves, by index, with the log. It reads the log up
 * to the newest of them.
 *
 * @throws if the leaves differ from the signed ones
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
