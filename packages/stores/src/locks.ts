import { DatabaseSync } from 'node:sqlite'

/**
 * Holds a lock beside a file until it is let go or the process ends, however it ends.
 *
 * Node has no file locks of its own; an SQLite transaction holds one that the system lets go of.
 *
 * @throws {Error} when another process holds it
 */
export function lockExclusively(path: string): () => void {
  const db = new DatabaseSync(`${path}.lock`)
  try {
    db.exec('BEGIN EXCLUSIVE')
  } catch (cause) {
    db.close()
    throw new Error(`another process writes to it (it holds ${path}.lock)`, { cause })
  }
  return () => db.close()
}

/** Held beside a file by everybody who has it open to write; the system lets go of it when a process ends, however it ends. */
export interface OpenersLock {
  /** Whether nobody else held it when it was taken. */
  readonly isSole: boolean
  /** Lets others in, where nobody else was: until then they wait at their opening. */
  share(): void
  release(): void
}

/**
 * Takes the lock: alone, if nobody has it, so that what a dead process left can be looked after; else with the others.
 *
 * Node has no file locks of its own; an SQLite transaction holds one.
 */
export function lockWithOthers(path: string, timeoutMs: number): OpenersLock {
  const db = new DatabaseSync(`${path}.openers`)
  let isSole = false
  try {
    // In WAL mode readers and a writer do not exclude each other, which is what this lock is for.
    db.exec('BEGIN EXCLUSIVE')
    isSole = true
  } catch {
    share()
  }

  function share(): void {
    if (db.isTransaction) db.exec('COMMIT')
    db.exec(`PRAGMA busy_timeout = ${timeoutMs}`)
    db.exec('BEGIN')
    // A transaction has its lock from the first time it reads.
    db.prepare('SELECT count(*) FROM sqlite_schema').get()
  }

  return {
    isSole,
    share() {
      if (isSole) share()
    },
    release: () => db.close(),
  }
}
