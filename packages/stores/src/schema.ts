import { renameSync, rmSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { createPrivately, numberOf } from './sqlite-file.ts'

/** One kind of Toolgate database. */
export interface Schema {
  /** The name with its article, for the message "it is not <name> database". */
  readonly name: 'an audit' | 'a state'
  readonly applicationId: number
  readonly version: number
  /** The SQL that creates the tables of a new database. */
  readonly tables: string
  /** The statements that upgrade a file to the next version. The key is the file's current version. */
  readonly upgrades: ReadonlyMap<number, string>
}

/** The largest file that is copied before an upgrade. A copy of a larger one takes too much time and space. */
const MAX_COPIED_BYTES = 64 * 1024 * 1024

/** @throws {Error} for a database of another program, or of a later version */
export function checkSchema(db: DatabaseSync, schema: Schema, { mayBeNew }: { readonly mayBeNew: boolean }): void {
  const { name, applicationId, version: known } = schema
  // The tables are checked first, because another process may create them and set the id between these two reads.
  const isEmpty = numberOf(db, 'SELECT count(*) FROM sqlite_schema') === 0
  const id = numberOf(db, 'PRAGMA application_id')
  const isNew = id === 0 && isEmpty
  if (id !== applicationId && !(isNew && mayBeNew)) throw new Error(`it is not ${name} database`)
  const version = numberOf(db, 'PRAGMA user_version')
  if (version > known)
    throw new Error(
      `it has version ${version}, and this Toolgate knows ${known}: use the Toolgate that wrote it, or restore a backup or the copy of version ${known}`,
    )
}

/**
 * Creates the tables of a new database, or upgrades those of an earlier version, in one transaction. Before an upgrade,
 * a file of up to 64 MiB is copied to `<path>.version-<n>`. `more` runs in the same transaction.
 */
export function prepareSchema(db: DatabaseSync, path: string, schema: Schema, more: () => void = () => {}): void {
  const { applicationId, tables, upgrades } = schema
  db.exec('BEGIN IMMEDIATE')
  try {
    const from = numberOf(db, 'PRAGMA user_version')
    if (from === 0)
      db.exec(`${tables}; PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${schema.version}`)
    else if (from < schema.version) keepCopy(db, path, from)
    for (let version = numberOf(db, 'PRAGMA user_version'); version < schema.version; version++) {
      const upgrade = upgrades.get(version)
      if (upgrade === undefined) throw new Error(`it has version ${version}, which this Toolgate cannot upgrade`)
      db.exec(`${upgrade}; PRAGMA user_version = ${version + 1}`)
    }
    checkSchema(db, schema, { mayBeNew: false })
    more()
    db.exec('COMMIT')
  } catch (error) {
    if (db.isTransaction) db.exec('ROLLBACK')
    throw error
  }
}

/** Copies the committed data. The caller's transaction keeps other writers out. */
function keepCopy(db: DatabaseSync, path: string, version: number): void {
  if (numberOf(db, 'PRAGMA page_count') * numberOf(db, 'PRAGMA page_size') > MAX_COPIED_BYTES) return
  const draft = `${path}.version-${version}.draft`
  rmSync(draft, { force: true })
  createPrivately(draft)
  const reader = new DatabaseSync(path, { readOnly: true })
  try {
    reader.prepare('VACUUM INTO ?').run(draft)
  } finally {
    reader.close()
  }
  renameSync(draft, `${path}.version-${version}`)
}
