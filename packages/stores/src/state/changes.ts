import type { StoresDatabase } from './database.ts'

export interface Changes {
  /** Counts a change of the state, in the transaction that makes it. */
  count(): void
  /** Tells the listeners of a change of this process's. */
  tell(): void
  subscribe(listener: () => void): () => void
  close(): void
}

/** Well within the second in which a change must be seen. */
const POLL_MS = 250

/**
 * Tells of changes of the state, those of other processes too: these by a look at the file four times a second,
 * while somebody listens.
 */
export function createChanges(db: StoresDatabase): Changes {
  const countUp = db.prepare('UPDATE machine SET state_revision = state_revision + 1')
  const selectRevision = db.prepare('SELECT state_revision FROM machine')
  const selectVersion = db.prepare('PRAGMA data_version')
  const listeners = new Set<() => void>()
  let timer: NodeJS.Timeout | undefined
  let version: unknown
  let revision: unknown

  function readRevision(): unknown {
    return selectRevision.get()?.['state_revision']
  }

  function poll(): void {
    try {
      // Changes with each commit of another connection, whatever that was about.
      const now = selectVersion.get()?.['data_version']
      if (now === version) return
      const latest = readRevision()
      version = now
      if (latest === revision) return
      revision = latest
    } catch {
      // The next look is in a moment; whoever reads or writes meanwhile is told of the fault.
      return
    }
    callListeners()
  }

  function callListeners(): void {
    // One that a listener adds is told of what comes after.
    const told = [...listeners]
    for (const listener of told) {
      try {
        listener()
      } catch {
        // A listener has nobody to answer to: what it was told of has happened.
      }
    }
  }

  function stop(): void {
    clearInterval(timer)
    timer = undefined
  }

  return {
    count: () => void countUp.run(),
    tell() {
      if (listeners.size === 0) return
      try {
        // What others changed before this is told of with it.
        revision = readRevision()
      } catch {
        // The change was made; at worst the next look tells of it once more.
      }
      callListeners()
    },
    subscribe(listener) {
      const own = () => listener()
      if (timer === undefined) {
        db.read(() => {
          version = selectVersion.get()?.['data_version']
          revision = readRevision()
        })
        timer = setInterval(poll, POLL_MS).unref()
      }
      listeners.add(own)
      return () => {
        listeners.delete(own)
        if (listeners.size === 0) stop()
      }
    },
    close() {
      listeners.clear()
      stop()
    },
  }
}
