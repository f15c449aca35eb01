import type { AuditReader, AuditRecord } from '@toolgate/core/audit'
import { createEmitter } from '@toolgate/values'
import { recordPages } from '../../util/next-turn.ts'

export interface AuditTail {
  /** Calls the listener with every record that is written after the promise resolves, oldest first. */
  subscribe(listener: (records: readonly AuditRecord[]) => void): Promise<() => void>
}

/**
 * The maximum number of pages to catch up. Beyond it, a listener continues with the newest records; the API has the
 * others.
 */
const MAX_PAGES = 10

/** Returns a feed of new audit records. While it has listeners, it queries the audit every `everyMs`. */
export function createAuditTail(audit: AuditReader, onFault: (error: unknown) => void, everyMs = 40): AuditTail {
  const listeners = createEmitter<[records: readonly AuditRecord[]]>(onFault)
  let started: Promise<void> | undefined
  let timer: NodeJS.Timeout | undefined
  let afterSeq = 0

  return {
    async subscribe(listener) {
      const unsubscribe = listeners.subscribe(listener)
      try {
        await (started ??= start())
      } catch (error) {
        leave()
        throw error
      }
      return leave

      function leave(): void {
        unsubscribe()
        if (listeners.size > 0) return
        clearTimeout(timer)
        started = undefined
      }
    },
  }

  async function start(): Promise<void> {
    const [newest] = await audit.query({ limit: 1 })
    afterSeq = newest?.seq ?? 0
    schedule()
  }

  function schedule(): void {
    clearTimeout(timer)
    if (listeners.size > 0) timer = setTimeout(() => void emit(), everyMs).unref()
  }

  async function emit(): Promise<void> {
    const round = started
    try {
      const records = await readNew()
      // All listeners may have left meanwhile, and others may have subscribed.
      if (round !== started) return
      afterSeq = records.at(-1)?.seq ?? afterSeq
      if (records.length > 0) listeners.emit(records)
    } catch (error) {
      onFault(error)
    }
    if (round === started) schedule()
  }

  /** Reads page by page, as queries return the newest records first. */
  async function readNew(): Promise<readonly AuditRecord[]> {
    const found: AuditRecord[] = []
    for await (const records of recordPages(audit, { afterSeq }, MAX_PAGES)) found.push(...records)
    return found.toReversed()
  }
}
