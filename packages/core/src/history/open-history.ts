import type { HistoryItem, HistoryMark, HistoryPart, HistoryStore } from '../ports/history.ts'
import type { MaybePromise, RunOfCall } from '../ports/ports.ts'
import { chain, ToolgateError } from '@toolgate/values'
import { UNTRUSTED } from './facts.ts'
import { EVERYTHING, type Lifetimes, Monitor, type MonitorBounds } from './monitor.ts'
import type { OriginItem } from './origins/origin-index.ts'

export interface HistoryHost {
  readonly store: HistoryStore
  readonly bounds: MonitorBounds
  /** Milliseconds for which a history is kept after its last use. */
  readonly keepMs: number
  wallMs(): number
  /** Returns a store's answer. Rejects if it is late. */
  inTime<T>(answer: MaybePromise<T>): MaybePromise<T>
}

/** How to create a history if there is none. */
export interface Beginning {
  readonly id: string
  readonly owner: string
  readonly isShadow: boolean
  readonly lifetimes: Lifetimes
  readonly kept: readonly string[]
  /** Wall-clock milliseconds since when the history may be incomplete. */
  readonly lostMs: number | undefined
}

/** How often a call is decided again because other replicas added to the history. */
const MAX_TRIES = 20

/** One history in this process. Reads and additions run one after the other, synchronously with a synchronous store. */
export class OpenHistory {
  monitor: Monitor
  /** Referenced, so that garbage collection does not discard optimised code for calls of histories. */
  latest: object | undefined
  readonly #beginning: Beginning
  readonly #host: HistoryHost
  #busy: Promise<unknown> | undefined
  #expiresAt: number
  #words: RunOfCall['userWords']
  #earlier: RunOfCall['earlierResults']

  constructor(part: HistoryPart, beginning: Beginning, host: HistoryHost) {
    this.monitor = new Monitor(part, beginning.lifetimes, host.bounds)
    this.#beginning = beginning
    this.#host = host
    this.#expiresAt = part.expiresAt
  }

  /** Returns whether the history must be written now to extend its expiry in the store. */
  isDue(nowMs: number): boolean {
    return this.#expiresAt - nowMs <= this.#host.keepMs / 2
  }

  /** Applies what others have added. */
  refresh(): MaybePromise<void> {
    return this.#inTurn(() => {
      const { store, wallMs, inTime } = this.#host
      return chain(inTime(store.read(this.#beginning.id, this.monitor.mark, wallMs())), (part) => this.#took(part))
    })
  }

  /** Adds items, even if the history has changed. */
  add(items: readonly HistoryItem[]): MaybePromise<void> {
    if (items.length === 0) return
    return this.#inTurn(() => chain(this.#add(items, false), () => undefined))
  }

  /** Notes that something was not added, so that every process knows that the history is incomplete. */
  lose(): MaybePromise<void> {
    const notes = this.monitor.notesOfLoss(this.#host.wallMs())
    // Take the notes in this process first, because the store may fail to write them.
    for (const note of notes) this.monitor.take(note)
    return this.add(notes)
  }

  /** Adds the words of a user. Known words are not added again. */
  addWords(words: NonNullable<RunOfCall['userWords']>): MaybePromise<void> {
    if (words === this.#words) return
    this.#words = words
    return this.add(toHistoryItems(this.monitor.index.addWords(words), this.#host.wallMs()))
  }

  /** Adds results from before the run, once. Their author is unknown. */
  addEarlier(results: readonly unknown[], event: string, readsOrigin: boolean): MaybePromise<void> {
    if (results === this.#earlier) return
    this.#earlier = results
    if (results.length === 0) return
    const { monitor } = this
    const nowMs = this.#host.wallMs()
    const texts = readsOrigin ? toHistoryItems(monitor.index.addOutput('untrusted', results), nowMs) : []
    const { labelMs } = monitor.lifetimes
    return this.add([...monitor.itemsFor('label', UNTRUSTED, undefined, { event, nowMs }, labelMs), ...texts])
  }

  /**
   * Adds the items that `decide` returns. If the state has changed since, `decide` is called again. Any other result of
   * `decide` is returned.
   */
  enter<T>(decide: (nowMs: number) => readonly HistoryItem[] | T): MaybePromise<T | undefined> {
    return this.#inTurn(() => this.#enter(decide, MAX_TRIES))
  }

  #enter<T>(decide: (nowMs: number) => readonly HistoryItem[] | T, tries: number): MaybePromise<T | undefined> {
    const nowMs = this.#host.wallMs()
    const items = decide(nowMs)
    if (!isList(items)) return items
    if (tries === 0) throw new ToolgateError('state_unavailable', 'The history of the run changes too often.')
    return chain(this.#add(items, true, nowMs), (added) => (added ? undefined : this.#enter(decide, tries - 1)))
  }

  #add(
    items: readonly HistoryItem[],
    unlessChanged: boolean,
    nowMs: number = this.#host.wallMs(),
  ): MaybePromise<boolean> {
    const { store, keepMs, inTime } = this.#host
    const expiresAt = nowMs + keepMs
    const since = this.monitor.mark
    // Each use extends the life of a history, but not each use writes.
    if (items.length === 0 && !this.isDue(nowMs) && !unlessChanged) return true
    const adding = inTime(store.add(this.#beginning.id, { items, since, unlessChanged, nowMs, expiresAt }))
    return chain(adding, (answer) => {
      if (answer === undefined || isLost(answer, since))
        return chain(this.#beginAgain(), () => (unlessChanged ? false : this.#add(items, false)))
      if (answer.version !== since.version) this.monitor.apply(answer)
      this.#expiresAt = answer.expiresAt
      if (!answer.added) return false
      // Texts are added to the index before the store.
      for (const item of items)
        if (item.kind === 'label' || item.kind === 'tuple' || item.kind === 'unkept') this.monitor.take(item)
      return true
    })
  }

  #took(part: HistoryPart | undefined): MaybePromise<void> {
    const { mark } = this.monitor
    if (part === undefined || isLost(part, mark)) return this.#beginAgain()
    this.#expiresAt = part.expiresAt
    if (part.version !== mark.version) this.monitor.apply(part)
  }

  /** The store has lost the history. Starts a new one that counts as unknown; after a long time without use, as empty. */
  #beginAgain(): MaybePromise<void> {
    const nowMs = this.#host.wallMs()
    const isOver = nowMs >= this.#expiresAt && this.#beginning.lifetimes.labelMs !== Infinity
    const again = beginHistory({ ...this.#beginning, lostMs: isOver ? undefined : nowMs }, this.#host)
    return chain(again, (history) => {
      this.monitor = history.monitor
      this.#expiresAt = history.#expiresAt
      this.#words = undefined
      this.#earlier = undefined
    })
  }

  #inTurn<T>(work: () => MaybePromise<T>): MaybePromise<T> {
    const answer = this.#busy ? this.#busy.then(work) : work()
    if (!(answer instanceof Promise)) return answer
    const over: Promise<void> = answer.then(
      () => this.#ended(over),
      () => this.#ended(over),
    )
    this.#busy = over
    return answer
  }

  #ended(over: Promise<void>): void {
    if (this.#busy === over) this.#busy = undefined
  }
}

/** Creates a history or returns the existing one. In both cases notes what is lost. */
export function beginHistory(beginning: Beginning, host: HistoryHost): MaybePromise<OpenHistory> {
  const { id, owner, isShadow, kept, lostMs } = beginning
  const nowMs = host.wallMs()
  const opening = host.store.open(id, {
    owner,
    ...(isShadow && { isShadow }),
    kept,
    nowMs,
    expiresAt: nowMs + host.keepMs,
  })
  return chain(host.inTime(opening), (part) => {
    const history = new OpenHistory(part, beginning, host)
    if (lostMs === undefined) return history
    return chain(history.add([{ kind: 'unkept', text: EVERYTHING, atMs: lostMs }]), () => history)
  })
}

/** Returns items of an index for a store. An empty text means that there was more. */
export function toHistoryItems(seen: readonly OriginItem[], atMs: number): readonly HistoryItem[] {
  return seen.map(({ origin, text, full }) => ({ kind: origin, text: full ? '' : text, atMs }))
}

function isLost(now: HistoryMark, before: HistoryMark): boolean {
  return now.generation !== before.generation || now.version < before.version
}

function isList(items: unknown): items is readonly HistoryItem[] {
  return Array.isArray(items)
}
