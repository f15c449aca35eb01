import { setTimeout as delay } from 'node:timers/promises'
import { closedError, unavailableError } from './audit-file.ts'
import type { FileAudit } from './audit-options.ts'
import { addLast, type SinkParts } from './sink-parts.ts'

const GROUP_SIZE = 200
const GROUP_MS = 100
const RETRY_MS = 250
const SYNC_MS = 1000
/** How long a flush waits for another process to let go of the file. */
const PATIENCE_MS = 2000
const PASSING_MS = 10

/**
 * Gives a sink whose writes return at once, and which stores entries in groups.
 *
 * Entries that the disk refuses wait in order and are tried again. When too many wait, writes throw
 * `audit_unavailable`, so that the gate refuses calls rather than letting them go unrecorded.
 */
export function createBatchedAudit(parts: SinkParts): FileAudit {
  const { file, waiting, open, maxWaiting } = parts
  let groupTimer: ReturnType<typeof setTimeout> | undefined
  /** Set while something is stored and not synced. */
  let syncTimer: ReturnType<typeof setTimeout> | undefined
  let failure: unknown
  /** A sync that failed is not trusted to succeed later: the system may have forgotten what it could not write. */
  let lostSync: unknown
  let isClosed = false
  const checkpointing = parts.checkpointing(syncNow)
  if (waiting.hasAny) groupTimer = setTimeout(store, GROUP_MS).unref()

  function store(): void {
    clearTimeout(groupTimer)
    groupTimer = undefined
    try {
      const count = waiting.store()
      failure = undefined
      syncTimer ??= setTimeout(syncInTime, SYNC_MS).unref()
      checkpointing.stored(count)
    } catch (error) {
      failure = error
      groupTimer = setTimeout(store, RETRY_MS).unref()
    }
  }

  async function sync(): Promise<void> {
    if (syncTimer === undefined) return
    clearTimeout(syncTimer)
    syncTimer = undefined
    await syncNow().catch(() => {})
  }

  async function syncNow(): Promise<void> {
    if (lostSync === undefined) await file.sync().catch(loseSync)
    if (lostSync !== undefined) throw lostSync as Error
  }

  function loseSync(error: unknown): void {
    lostSync = error
  }

  function syncInTime(): void {
    void sync()
  }

  /** Waits a moment for another process to let go of the file. */
  async function storeAll(): Promise<void> {
    const deadlineMs = performance.now() + PATIENCE_MS
    while (waiting.hasAny) {
      store()
      if (failure === undefined || !file.isPassing(failure) || performance.now() >= deadlineMs) return
      await delay(PASSING_MS)
    }
  }

  async function settle(): Promise<void> {
    await storeAll()
    await sync()
    const problem = lostSync ?? failure
    if (problem !== undefined) throw unavailableError(file, problem)
  }

  function storeForReaders(): void {
    if (isClosed) throw closedError(file)
    if (waiting.hasAny && failure === undefined) store()
  }

  return {
    evidence: parts.evidence,
    get droppedCount() {
      return waiting.droppedCount
    },
    write(entry) {
      if (isClosed) throw closedError(file)
      if (lostSync !== undefined || waiting.count >= maxWaiting) {
        waiting.refuse()
        throw unavailableError(file, lostSync ?? failure)
      }
      waiting.add(entry)
      open.note(entry)
      if (waiting.count >= GROUP_SIZE && failure === undefined) store()
      else groupTimer ??= setTimeout(store, GROUP_MS)
    },
    query(query) {
      storeForReaders()
      return file.query(query)
    },
    async *exportRecords(query = {}) {
      storeForReaders()
      yield* file.exportRecords(query)
    },
    async countOutcomes(query) {
      storeForReaders()
      return file.countOutcomes(query)
    },
    async flush() {
      if (!isClosed) await settle()
    },
    async close() {
      if (isClosed) return
      isClosed = true
      if (waiting.hasAny) store()
      addLast(parts)
      try {
        await settle()
      } finally {
        clearTimeout(groupTimer)
        clearTimeout(syncTimer)
        waiting.drop()
        await checkpointing.close()
        file.close()
      }
    },
  }
}
