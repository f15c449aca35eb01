import { DatabaseSync } from 'node:sqlite'
import type { AuditFile } from './audit-file.ts'
import { StoredInputBoxes } from './input-boxes.ts'
import { numberIn, textIn } from './rows.ts'
import { numberOf } from './sqlite-file.ts'

/** The maximum number of records that are read or removed at once. They take a few milliseconds. */
const ROWS = 200
/** The maximum number of pages of 4 KiB that are moved at once. */
const PAGES = 100
/** The free part of the file above which space is returned to the disk. New records soon fill a smaller part. */
const FREE_PART = 1 / 4

/** The part of an audit in SQLite that removes records. */
type Removal = Pick<AuditFile, 'firstSeq' | 'lastCut' | 'textsIn' | 'removeUpTo' | 'reclaim'> & { close(): void }

/**
 * Returns the removal of records from a database. It opens its own connection at first use. Its commits do not wait for
 * the disk, because records that return after a power cut are removed again.
 */
export function removalFrom(path: string): Removal {
  let opened: DatabaseSync | undefined
  let isReclaiming = false

  function open(): DatabaseSync {
    if (opened === undefined) {
      opened = new DatabaseSync(path, { timeout: 0 })
      opened.exec('PRAGMA synchronous = NORMAL')
    }
    return opened
  }

  function firstSeq(): number {
    return Number(open().prepare('SELECT min(seq) AS seq FROM audit').get()?.['seq'] ?? Number.POSITIVE_INFINITY)
  }

  return {
    firstSeq,
    lastCut: (seqs) => seqs.at(-1) ?? 0,
    *textsIn(after, upTo) {
      const page = open().prepare('SELECT seq, record FROM audit WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?')
      for (let from = after; ;) {
        const rows = page.all(from, upTo, ROWS)
        yield rows.map((row) => textIn(row, 'record'))
        if (rows.length < ROWS) return
        from = numberIn(rows.at(-1) ?? {}, 'seq')
      }
    },
    removeUpTo(seq) {
      const upTo = Math.min(seq, firstSeq() + ROWS - 1)
      const db = open()
      const boxes = new StoredInputBoxes(db, { mayWrite: false })
      while (boxes.removeUpTo(upTo));
      db.prepare('DELETE FROM audit WHERE seq <= ?').run(upTo)
      return firstSeq() <= seq
    },
    reclaim() {
      const db = open()
      const free = numberOf(db, 'PRAGMA freelist_count')
      isReclaiming ||= free > numberOf(db, 'PRAGMA page_count') * FREE_PART
      // A database of an earlier version cannot shrink: new records fill its free pages.
      if (!isReclaiming || free === 0 || numberOf(db, 'PRAGMA auto_vacuum') !== INCREMENTAL)
        return (isReclaiming = false)
      db.exec(`PRAGMA incremental_vacuum(${PAGES})`)
      // The file shrinks when the log is copied into it.
      if (free <= PAGES) db.exec('PRAGMA wal_checkpoint(PASSIVE)')
      return true
    },
    close: () => opened?.close(),
  }
}

const INCREMENTAL = 2
