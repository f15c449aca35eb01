import { DatabaseSync } from 'node:sqlite'

/**
 * Takes a lock beside a file. Returns a function that releases it; the end of the process releases it too.
 *
 * Node has no file locks; an SQLite transaction holds one that the system releases.
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

/** A lock beside a file, held by every process that has it open for writing. The end of a process releases it. */
export interface OpenersLock {
  /** Whether no other process held it when it was taken. */
  readonly isSole: boolean
  /** Lets other processes take it too. Until then their opening waits. */
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
    // Not in WAL mode, where readers and a writer do not exclude each other.
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
