import { setImmediate as endOfTurn, setTimeout as delay } from 'node:timers/promises'
import { closedError, unavailableError } from './audit-file.ts'
import type { FileAudit } from './audit-options.ts'
import { addLast, type SinkParts } from './sink-parts.ts'

/** How long a write waits for another process to let go of the file. */
const PATIENCE_MS = 2000
const RETRY_MS = 10
/** How often it is tried again to tell of records that were dropped. */
const TELL_MS = 250

/**
 * Gives a sink whose writes resolve when the entry is on the disk.
 *
 * All writes of one turn of the event loop, and those that come while the disk is busy, share one
 * commit. A write that the disk refuses rejects with `audit_unavailable`, and its entry is not kept.
 */
export function createRequiredAudit(parts: SinkParts): FileAudit {
  const { file, waiting, open, maxWaiting } = parts
  /** Resolves for everyone whose entry waits now. */
  let group: PromiseWithResolvers<void> | undefined
  let working: Promise<void> | undefined
  let tellTimer: ReturnType<typeof setTimeout> | undefined
  /** A sync that failed is not trusted to succeed later: the system may have forgotten what it could not write. */
  let lostSync: unknown
  let isClosed = false
  const checkpointing = parts.checkpointing(syncNow)
  tellLater()

  function takeGroup(): PromiseWithResolvers<void> | undefined {
    const taken = group
    group = undefined
    return taken
  }

  async function syncNow(): Promise<void> {
    if (lostSync === undefined) await file.sync().catch(loseSync)
    if (lostSync !== undefined) throw lostSync as Error
  }

  function loseSync(error: unknown): void {
    lostSync = error
  }

  function store(): void {
    checkpointing.stored(waiting.store())
  }

  /** Gives the group of what was stored, or nothing when it was refused. Entries that come while it waits join it. */
  async function storeGroup(): Promise<PromiseWithResolvers<void> | undefined> {
    const deadlineMs = performance.now() + PATIENCE_MS
    for (;;) {
      try {
        store()
        return takeGroup()
      } catch (error) {
        if (!file.isPassing(error) || performance.now() >= deadlineMs) {
          for (const entry of waiting.drop()) open.forget(entry)
          takeGroup()?.reject(unavailableError(file, error))
          tellLater()
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
        await syncNow()
        stored.resolve()
      } catch (error) {
        stored.reject(unavailableError(file, error))
      }
    }
    working = undefined
  }

  /** What the audit has to say of itself does not wait for the next call. */
  function tellLater(): void {
    if (waiting.hasAny && !isClosed) tellTimer ??= setTimeout(tell, TELL_MS).unref()
  }

  function tell(): void {
    tellTimer = undefined
    if (isClosed || working !== undefined) return tellLater()
    try {
      store()
    } catch {
      tellLater()
    }
  }

  async function settle(): Promise<void> {
    await working
    if (lostSync !== undefined) throw unavailableError(file, lostSync)
  }

  /** Never rejects: nobody waits for what the audit says of itself. */
  async function settleOwn(): Promise<void> {
    try {
      if (waiting.hasAny) store()
      await syncNow()
    } catch {
      // The next opening ends what is left open.
    }
  }

  return {
    evidence: parts.evidence,
    get droppedCount() {
      return waiting.droppedCount
    },
    async write(entry) {
      if (isClosed) throw closedError(file)
      if (lostSync !== undefined || waiting.count >= maxWaiting) {
        waiting.refuse()
        throw unavailableError(file, lostSync ?? new Error(`${maxWaiting} entries wait for the disk`))
      }
      waiting.add(entry)
      open.note(entry)
      group ??= Promise.withResolvers()
      working ??= work()
      return group.promise
    },
    query(query) {
      if (isClosed) throw closedError(file)
      return file.query(query)
    },
    async *exportRecords(query = {}) {
      if (isClosed) throw closedError(file)
      yield* file.exportRecords(query)
    },
    async countOutcomes(query) {
      if (isClosed) throw closedError(file)
      return file.countOutcomes(query)
    },
    async flush() {
      if (!isClosed) await settle()
    },
    async close() {
      if (isClosed) return
      isClosed = true
      clearTimeout(tellTimer)
      try {
        await settle()
        addLast(parts)
        await settleOwn()
      } finally {
        await checkpointing.close()
        file.close()
      }
    },
  }
}
