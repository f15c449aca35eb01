import { DatabaseSync } from 'node:sqlite'

/**
 * Takes a lock beside a file. Returns a function that releases it; the end of the process releases it too.
 *
 * Node has no file locks, so an SQLite transaction holds a lock, which the system releases.
 *
 * @throws {Error} if another process holds it
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

/**
 * A lock beside a file. Every process that has the file open for writing holds it. The end of a process releases it.
 */
export interface OpenersLock {
  /** Whether no other process held the lock when it was taken. */
  readonly isSole: boolean
  /** Lets other processes take the lock too. Until then they wait in their opening. */
  share(): void
  release(): void
}

/**
 * Takes the lock: exclusively if no process has it, so that a dead process's calls can be ended; otherwise shared.
 *
 * Node has no file locks; an SQLite transaction holds one.
 */
export function lockWithOthers(path: string, timeoutMs: number): OpenersLock {
  const db = new DatabaseSync(`${path}.openers`)
  let isSole = false
  try {
    // This database is not in WAL mode, in which readers and a writer do not exclude each other.
    db.exec('BEGIN EXCLUSIVE')
    isSole = true
  } catch {
    share()
  }

  function share(): void {
    if (db.isTransaction) db.exec('COMMIT')
    db.exec(`PRAGMA busy_timeout = ${timeoutMs}`)
    db.exec('BEGIN')
    // A transaction takes its lock at its first read.
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
