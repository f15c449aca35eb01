import { mergeNewer } from './audit-feed.ts'
import { createStore } from './store.ts'
import type { AuditRecord } from './wire.ts'

export interface FeedSnapshot {
  /** The records, newest first. */
  readonly records: readonly AuditRecord[]
  /** Whether the first page is loaded. */
  readonly isReady: boolean
  /** Whether no older record can be loaded. */
  readonly isEnd: boolean
  /** The error of the latest page, if it could not be loaded. */
  readonly error: unknown
}

interface FeedOptions {
  /** Fetches a page of records, newest first. */
  readonly fetchPage: (range: {
    readonly before?: number
    readonly after?: number
    readonly limit: number
  }) => Promise<readonly AuditRecord[]>
  readonly matches: (record: AuditRecord) => boolean
  /** Runs work after a delay, so that records that arrive meanwhile are displayed together. */
  readonly later: (work: () => void) => void
}

const MAX_HELD = 100_000
const PAGE = 1000
/** The time between updates, in milliseconds. Nobody reads faster, and the frames between are free for scrolling. */
export const BATCH_MS = 100

/**
 * The records on the page: fetched records, preceded by live ones. Empty until `catchUp` has fetched the first page.
 */
export class Feed {
  readonly #options: FeedOptions
  readonly #store = createStore<FeedSnapshot>({ records: [], isReady: false, isEnd: false, error: undefined })
  readonly subscribe = this.#store.subscribe
  #arrived: AuditRecord[] = []
  #isFlushDue = false
  #catchingUp: Promise<void> | undefined
  /** Whether records may be missing that are older than those from the socket. */
  #isBehind = false
  #loadingOlder: Promise<void> | undefined

  constructor(options: FeedOptions) {
    this.#options = options
  }

  get current(): FeedSnapshot {
    return this.#store.current
  }

  /** Adds a record from the socket. Records that arrive together are displayed together. */
  add(record: AuditRecord): void {
    if (!this.#options.matches(record)) return
    this.#arrived.push(record)
    if (this.#isFlushDue || !this.current.isReady) return
    this.#isFlushDue = true
    this.#options.later(() => this.#flush())
  }

  /** Fetches records that are newer than the newest one here, after a gap or without a socket. */
  catchUp(): Promise<void> {
    this.#isBehind = true
    return (this.#catchingUp ??= this.#catchUpAll().finally(() => (this.#catchingUp = undefined)))
  }

  loadOlder(): Promise<void> {
    return (this.#loadingOlder ??= this.#loadOlder().finally(() => (this.#loadingOlder = undefined)))
  }

  #flush(): void {
    this.#isFlushDue = false
    if (this.#isBehind || this.#catchingUp) return
    this.#set({ records: mergeNewer(this.current.records, this.#arrived.splice(0), MAX_HELD) })
  }

  async #catchUpAll(): Promise<void> {
    while (this.#isBehind) {
      this.#isBehind = false
      if (!(await this.#catchUpOnce())) this.#isBehind = true
      if (this.current.error !== undefined) return
    }
  }

  /** Fetches one page. Returns `false` if records may still be missing. */
  async #catchUpOnce(): Promise<boolean> {
    const newest = this.current.records[0]?.seq
    try {
      const page = await this.#options.fetchPage({ limit: PAGE, ...(newest === undefined ? {} : { after: newest }) })
      const { records, isEnd } = this.current
      // A full page may leave a gap before the records here, so the feed restarts with this page.
      const isNew = newest === undefined || page.length >= PAGE
      // Records that arrived after the request for this page may follow it.
      const following = this.#isBehind ? [] : this.#arrived.splice(0)
      this.#set({
        records: mergeNewer(isNew ? [] : records, [...page, ...following], MAX_HELD),
        isReady: true,
        isEnd: newest === undefined ? page.length < PAGE : !isNew && isEnd,
        error: undefined,
      })
      return true
    } catch (error) {
      this.#set({ error })
      return false
    }
  }

  async #loadOlder(): Promise<void> {
    const oldest = this.current.records.at(-1)?.seq
    if (oldest === undefined || this.current.isEnd) return
    try {
      const page = await this.#options.fetchPage({ limit: PAGE, before: oldest })
      // The feed has restarted meanwhile, so this page no longer follows its records.
      if (this.current.records.at(-1)?.seq !== oldest) return
      const records = [...this.current.records, ...page].slice(0, MAX_HELD)
      this.#set({ records, isEnd: page.length < PAGE || records.length >= MAX_HELD, error: undefined })
    } catch (error) {
      this.#set({ error })
    }
  }

  #set(changes: Partial<FeedSnapshot>): void {
    const isChange = Object.entries(changes).some(([name, value]) => value !== this.current[name as keyof FeedSnapshot])
    if (isChange) this.#store.set({ ...this.current, ...changes })
  }
}
