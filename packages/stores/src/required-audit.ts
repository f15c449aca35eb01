import { setImmediate as endOfTurn, setTimeout as delay } from 'node:timers/promises'
import { type AuditFile, closedError, createWaiting, unavailableError } from './audit-file.ts'
import type { FileAudit } from './audit-options.ts'

/** How long a write waits for another process to let go of the file. */
const PATIENCE_MS = 2000
const RETRY_MS = 10

/**
 * Gives a sink whose writes resolve when the entry is on the disk.
 *
 * All writes of one turn of the event loop, and those that come while the disk is busy, share one
 * commit. A write that the disk refuses rejects with `audit_unavailable`, and its entry is not kept.
 */
export function createRequiredAudit(file: AuditFile, maxWaiting: number): FileAudit {
  const waiting = createWaiting(file)
  /** Resolves for everyone whose entry waits now. */
  let group: PromiseWithResolvers<void> | undefined
  let working: Promise<void> | undefined
  /** A sync that failed is not trusted to succeed later: the system may have forgotten what it could not write. */
  let lostSync: unknown
  let droppedCount = 0
  let isClosed = false

  function takeGroup(): PromiseWithResolvers<void> | undefined {
    const taken = group
    group = undefined
    return taken
  }

  /** Gives the group of what was stored, or nothing when it was refused. Entries that come while it waits join it. */
  async function storeGroup(): Promise<PromiseWithResolvers<void> | undefined> {
    const deadlineMs = performance.now() + PATIENCE_MS
    for (;;) {
      try {
        waiting.store()
        return takeGroup()
      } catch (error) {
        if (!file.isPassing(error) || performance.now() >= deadlineMs) {
          droppedCount += waiting.drop()
          takeGroup()?.reject(unavailableError(file, error))
          return undefined
        }
      }
      await delay(RETRY_MS)
    }
  }

  async function work(): Promise<void> {
    while (waiting.count > 0) {
      await endOfTurn()
      const stored = await storeGroup()
      if (!stored) continue
      try {
        await file.sync()
        stored.resolve()
      } catch (error) {
        lostSync = error
        stored.reject(unavailableError(file, error))
      }
    }
    working = undefined
  }

  async function settle(): Promise<void> {
    await working
    if (lostSync !== undefined) throw unavailableError(file, lostSync)
  }

  return {
    get droppedCount() {
      return droppedCount
    },
    async write(entry) {
      if (isClosed) throw closedError(file)
      if (lostSync !== undefined || waiting.count >= maxWaiting) {
        droppedCount++
        throw unavailableError(file, lostSync ?? new Error(`${maxWaiting} entries wait for the disk`))
      }
      waiting.add(entry)
      group ??= Promise.withResolvers()
      working ??= work()
      return group.promise
    },
    query(query) {
      if (isClosed) throw closedError(file)
      return file.query(query)
    },
    async flush() {
      if (!isClosed) await settle()
    },
    async close() {
      if (isClosed) return
      isClosed = true
      try {
        await settle()
      } finally {
        file.close()
      }
    },
  }
}
