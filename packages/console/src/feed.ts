import { mergeNewer } from './audit-feed.ts'
import type { AuditRecord } from './wire.ts'

export interface FeedSnapshot {
  /** Newest first. */
  readonly records: readonly AuditRecord[]
  /** Whether the first page is loaded. */
  readonly isReady: boolean
  /** Whether no older record can be loaded. */
  readonly isEnd: boolean
  /** Why the latest page could not be loaded. */
  readonly error: unknown
}

export interface FeedOptions {
  /** Returns records, newest first. */
  readonly fetchPage: (range: {
    readonly before?: number
    readonly after?: number
    readonly limit: number
  }) => Promise<readonly AuditRecord[]>
  readonly matches: (record: AuditRecord) => boolean
  /** Does work after a while: records that come meanwhile are shown together. */
  readonly later: (work: () => void) => void
}

/** The records on the page: fetched ones, with live ones before them. */
export interface Feed {
  readonly snapshot: FeedSnapshot
  subscribe(listener: () => void): () => void
  /** Adds a record from the socket. Records that come together are shown together. */
  add(record: AuditRecord): void
  /** Fetches records newer than the newest one here: after a gap, or without a socket. */
  catchUp(): Promise<void>
  loadOlder(): Promise<void>
}

export const MAX_HELD = 100_000
const PAGE = 1000
/** New records are shown ten times a second: nobody reads faster, and the frames between are free for scrolling. */
export const BATCH_MS = 100

/** Returns an empty feed; `catchUp` fetches its first page. */
export function createFeed({ fetchPage, matches, later }: FeedOptions): Feed {
  const listeners = new Set<() => void>()
  let snapshot: FeedSnapshot = { records: [], isReady: false, isEnd: false, error: undefined }
  let arrived: AuditRecord[] = []
  let isFlushDue = false
  let catchingUp: Promise<void> | undefined
  /** Records may be missing that are older than those from the socket. */
  let isBehind = false
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
    catchUp() {
      isBehind = true
      return (catchingUp ??= catchUpAll().finally(() => (catchingUp = undefined)))
    },
    loadOlder: () => (loadingOlder ??= loadOlder().finally(() => (loadingOlder = undefined))),
  }

  function flush(): void {
    isFlushDue = false
    if (isBehind || catchingUp) return
    const records = mergeNewer(snapshot.records, arrived, MAX_HELD)
    arrived = []
    if (records !== snapshot.records) set({ records })
  }

  async function catchUpAll(): Promise<void> {
    while (isBehind) {
      isBehind = false
      if (!(await catchUp())) isBehind = true
      if (snapshot.error !== undefined) return
    }
  }

  /** Returns `false` if records may still be missing. */
  async function catchUp(): Promise<boolean> {
    const newest = snapshot.records[0]?.seq
    try {
      const page = await fetchPage({ limit: PAGE, ...(newest === undefined ? {} : { after: newest }) })
      // A full page may leave a gap before the records here. So the feed starts again from this page.
      const isNew = newest === undefined || page.length >= PAGE
      // What arrived may follow records that this page was asked for too early to have.
      const following = isBehind ? [] : arrived.splice(0)
      const latest = mergeNewer(isNew ? [] : snapshot.records, [...page, ...following], MAX_HELD)
      const isEnd = newest === undefined ? page.length < PAGE : !isNew && snapshot.isEnd
      if (latest !== snapshot.records || !snapshot.isReady || snapshot.error !== undefined)
        set({ records: latest, isReady: true, isEnd, error: undefined })
      return true
    } catch (error) {
      set({ error })
      return false
    }
  }

  async function loadOlder(): Promise<void> {
    const oldest = snapshot.records.at(-1)?.seq
    if (oldest === undefined || snapshot.isEnd) return
    try {
      const page = await fetchPage({ limit: PAGE, before: oldest })
      // The feed has started again meanwhile, so this page no longer follows its records.
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
