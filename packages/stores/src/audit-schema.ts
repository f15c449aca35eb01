import type { DatabaseSync } from 'node:sqlite'
import { numberOf } from './sqlite-file.ts'

/** `TGAT`, which tells our files from other databases. */
export const APPLICATION_ID = 0x54474154
const SCHEMA_VERSION = 2

/**
 * The columns are what queries ask for, `at` in milliseconds; `record` is the whole record in RFC 8785 form, last, so
 * that a scan need not read it. There is no index but `seq`: one more would double the cost of every call, and
 * the newest records, which are asked for, are found without.
 */
const TABLE = `
  CREATE TABLE audit (
    seq INTEGER PRIMARY KEY,
    event TEXT NOT NULL,
    tool TEXT,
    user_id TEXT,
    session_id TEXT,
    at INTEGER NOT NULL,
    record TEXT NOT NULL
  ) STRICT;
`

/** What version 1 has no columns for. */
export const SESSION_OF_RECORD = "record ->> '$.session_id'"
export const AT_OF_RECORD = "CAST(round(unixepoch(record ->> '$.ts', 'subsec') * 1000) AS INTEGER)"

const FROM_VERSION_1 = `
  ALTER TABLE audit RENAME TO audit_1;
  ${TABLE}
  INSERT INTO audit
    SELECT seq, event, tool, user_id, ${SESSION_OF_RECORD}, coalesce(${AT_OF_RECORD}, 0), record FROM audit_1;
  DROP TABLE audit_1;
`

/** Makes the tables of a new database, or brings those of an earlier version up to date. Belongs into a transaction. */
export function migrate(db: DatabaseSync): void {
  const version = numberOf(db, 'PRAGMA user_version')
  if (version >= SCHEMA_VERSION) return
  db.exec(version === 0 ? TABLE : FROM_VERSION_1)
  db.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${SCHEMA_VERSION}`)
}

/** Nothing is written into somebody else's database, nor into one of a later version. */
export function checkKind(db: DatabaseSync, applicationIds: readonly number[]): void {
  const id = numberOf(db, 'PRAGMA application_id')
  const isEmpty = numberOf(db, 'SELECT count(*) FROM sqlite_schema') === 0
  if (!applicationIds.includes(id) || (id === 0 && !isEmpty)) throw new Error('it is not an audit database')
  const version = numberOf(db, 'PRAGMA user_version')
  if (version > SCHEMA_VERSION) throw new Error(`it has version ${version}; this program knows ${SCHEMA_VERSION}`)
}
