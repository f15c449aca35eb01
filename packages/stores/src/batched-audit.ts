import { type AuditFile, closedError, createWaiting, unavailableError } from './audit-file.ts'
import type { FileAudit } from './audit-options.ts'

const GROUP_SIZE = 200
const GROUP_MS = 100
const RETRY_MS = 250
const SYNC_MS = 1000

/**
 * Gives a sink whose writes return at once, and which stores entries in groups.
 *
 * Entries that the disk refuses wait in order and are tried again. When too many wait, writes throw
 * `audit_unavailable`, so that the gate refuses calls rather than letting them go unrecorded.
 */
export function createBatchedAudit(file: AuditFile, maxWaiting: number): FileAudit {
  const waiting = createWaiting(file)
  let groupTimer: ReturnType<typeof setTimeout> | undefined
  /** Set while something is stored and not synced. */
  let syncTimer: ReturnType<typeof setTimeout> | undefined
  let failure: unknown
  /** A sync that failed is not trusted to succeed later: the system may have forgotten what it could not write. */
  let lostSync: unknown
  let droppedCount = 0
  let isClosed = false

  function store(): void {
    clearTimeout(groupTimer)
    groupTimer = undefined
    try {
      waiting.store()
      failure = undefined
      syncTimer ??= setTimeout(syncInTime, SYNC_MS).unref()
    } catch (error) {
      failure = error
      groupTimer = setTimeout(store, RETRY_MS).unref()
    }
  }

  async function sync(): Promise<void> {
    if (syncTimer === undefined) return
    clearTimeout(syncTimer)
    syncTimer = undefined
    try {
      await file.sync()
    } catch (error) {
      lostSync = error
    }
  }

  function syncInTime(): void {
    void sync()
  }

  async function settle(): Promise<void> {
    if (waiting.count > 0) store()
    await sync()
    const problem = lostSync ?? failure
    if (problem !== undefined) throw unavailableError(file, problem)
  }

  return {
    get droppedCount() {
      return droppedCount
    },
    write(entry) {
      if (isClosed) throw closedError(file)
      if (lostSync !== undefined || waiting.count >= maxWaiting) {
        droppedCount++
        throw unavailableError(file, lostSync ?? failure)
      }
      waiting.add(entry)
      if (waiting.count >= GROUP_SIZE && failure === undefined) store()
      else groupTimer ??= setTimeout(store, GROUP_MS)
    },
    query(query) {
      if (isClosed) throw closedError(file)
      if (waiting.count > 0 && failure === undefined) store()
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
        clearTimeout(groupTimer)
        droppedCount += waiting.drop()
        file.close()
      }
    },
  }
}
