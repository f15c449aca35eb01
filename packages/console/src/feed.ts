import { mergeNewer } from './audit-feed.ts'
import type { AuditRecord } from './wire.ts'

export interface FeedSnapshot {
  /** Newest first. */
  readonly records: readonly AuditRecord[]
  /** Whether the first page has come. */
  readonly isReady: boolean
  /** Whether there is nothing older, or no more is held here. */
  readonly isEnd: boolean
  /** Why the latest page did not come. */
  readonly error: unknown
}

export interface FeedOptions {
  /** Gives records, newest first. */
  readonly fetchPage: (range: {
    readonly before?: number
    readonly after?: number
    readonly limit: number
  }) => Promise<readonly AuditRecord[]>
  readonly matches: (record: AuditRecord) => boolean
  readonly later?: (work: () => void) => void
}

/** The audit as the page holds it: what was fetched, with what came live before it. */
export interface Feed {
  readonly snapshot: FeedSnapshot
  subscribe(listener: () => void): () => void
  /** Takes one that came over the socket. Many that come at once are shown at once. */
  add(record: AuditRecord): void
  /** Fetches what came after the newest that is held: after a gap, or where there is no socket. */
  catchUp(): Promise<void>
  loadOlder(): Promise<void>
}

export const MAX_HELD = 100_000
const PAGE = 1000
const BATCH_MS = 50

/** Gives an empty feed; `catchUp` fetches its first page. */
export function createFeed({ fetchPage, matches, later = (work) => setTimeout(work, BATCH_MS) }: FeedOptions): Feed {
  const listeners = new Set<() => void>()
  let snapshot: FeedSnapshot = { records: [], isReady: false, isEnd: false, error: undefined }
  let arrived: AuditRecord[] = []
  let isFlushDue = false
  let catchingUp: Promise<void> | undefined
  let loadingOlder: Promise<void> | undefined

  return {
    get snapshot() {
      return snapshot
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    add(record) {
      if (!matches(record)) return
      arrived.push(record)
      if (isFlushDue || !snapshot.isReady) return
      isFlushDue = true
      later(flush)
    },
    catchUp: () => (catchingUp ??= catchUp().finally(() => (catchingUp = undefined))),
    loadOlder: () => (loadingOlder ??= loadOlder().finally(() => (loadingOlder = undefined))),
  }

  function flush(): void {
    isFlushDue = false
    const records = mergeNewer(snapshot.records, arrived, MAX_HELD)
    arrived = []
    if (records !== snapshot.records) set({ records })
  }

  async function catchUp(): Promise<void> {
    const newest = snapshot.records[0]?.seq
    try {
      const page = await fetchPage({ limit: PAGE, ...(newest === undefined ? {} : { after: newest }) })
      // A full page may leave a gap before what is held: it begins anew, and what is older is fetched again.
      const isNew = newest === undefined || page.length >= PAGE
      const latest = mergeNewer(isNew ? [] : snapshot.records, [...page, ...arrived], MAX_HELD)
      arrived = []
      const isEnd = newest === undefined ? page.length < PAGE : !isNew && snapshot.isEnd
      if (latest !== snapshot.records || !snapshot.isReady || snapshot.error !== undefined)
        set({ records: latest, isReady: true, isEnd, error: undefined })
    } catch (error) {
      set({ error })
    }
  }

  async function loadOlder(): Promise<void> {
    const oldest = snapshot.records.at(-1)?.seq
    if (oldest === undefined || snapshot.isEnd) return
    try {
      const page = await fetchPage({ limit: PAGE, before: oldest })
      // Begun anew meanwhile: this page does not follow on what is held now.
      if (snapshot.records.at(-1)?.seq !== oldest) return
      const records = [...snapshot.records, ...page].slice(0, MAX_HELD)
      set({ records, isEnd: page.length < PAGE || records.length >= MAX_HELD, error: undefined })
    } catch (error) {
      set({ error })
    }
  }

  function set(changes: Partial<FeedSnapshot>): void {
    snapshot = { ...snapshot, ...changes }
    for (const listener of listeners) listener()
  }
}
