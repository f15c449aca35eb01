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
