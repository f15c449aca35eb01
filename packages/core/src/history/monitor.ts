import type { HistoryItem, HistoryMark, HistoryPart } from '../ports/history.ts'
import type { CallPattern } from './facts.ts'
import type { EarlierCall, Origin } from '../ports/fact-read.ts'
import type { Work } from '@toolgate/values'
import { hashOfTuple, ORIGINS_KEPT } from './rules.ts'
import { createOriginIndex, type OriginBounds, type OriginIndex } from './origins/origin-index.ts'

/** How long facts count, in milliseconds. In the history of a run they count until its end. */
export interface Lifetimes {
  readonly calledMs: number
  /** How long labels, and calls that began, count. */
  readonly labelMs: number
}

export interface MonitorBounds {
  /** Approximate bytes, without texts. */
  readonly maxBytes: number
  readonly origins: OriginBounds
}

/** An event of the run, and the attempt that caused it. */
interface RunEvent {
  /** The first attempt that caused it. */
  readonly event: string | undefined
  /** Whether any other attempt has caused it, too. */
  others: boolean
  readonly sinceMs: number
  atMs: number
  expiresAt: number
  readonly calls: EarlierCall[]
}

/** A label that calls of a run have raised. Times are wall-clock milliseconds. */
export interface RaisedLabel {
  readonly label: string
  /** When it was first raised. */
  readonly sinceMs: number
  /** When a call last raised it, to within a minute. */
  readonly latestMs: number
  /** Calls that raised it, of at most eight tools. */
  readonly calls: readonly EarlierCall[]
}

/** In an `unkept` item, stands for the whole history and all calls. */
export const EVERYTHING = '*'
const ALL_CALLS = 'calls'

const MAX_TOOLS = 8
const NOTHING: readonly HistoryItem[] = []
const ENTRY_BYTES = 160
/** An item is refreshed this long before it must be, so that not every call writes. */
const REFRESH_MS = 60_000

/** An attempt and a time. */
export interface Moment {
  readonly event: string
  readonly nowMs: number
}

/**
 * The state of one history, built from its items: labels, calls that rules can still ask about, and seen texts. Its answers
 * leave out what only the asking attempt has added.
 */
export class Monitor {
  readonly kept: ReadonlySet<string>
  readonly lifetimes: Lifetimes
  readonly #bounds: MonitorBounds
  #mark: HistoryMark
  #bytes = 0
  readonly #labels = new Map<string, RunEvent>()
  readonly #tuples = new Map<string, RunEvent>()
  /** What was not kept from the beginning, with the time since when it is. */
  readonly #unkept = new Map<string, number>()
  /** The rules for which nothing had to be noted, and until when. */
  #noted: { readonly keeps: ReadonlySet<string>; readonly untilMs: number } | undefined
  #index: OriginIndex | undefined
  #names: { readonly labels: readonly string[]; readonly untilMs: number } | undefined

  constructor(part: HistoryPart, lifetimes: Lifetimes, bounds: MonitorBounds) {
    this.kept = new Set(part.kept)
    this.lifetimes = lifetimes
    this.#bounds = bounds
    this.#mark = part
    this.apply(part)
  }

  get mark(): HistoryMark {
    return this.#mark
  }

  get index(): OriginIndex {
    return (this.#index ??= createOriginIndex(this.#bounds.origins))
  }

  /** Applies what others have added. */
  apply({ generation, version, items }: HistoryPart): void {
    this.#mark = { generation, version }
    for (const item of items) this.take(item)
  }

  /** Applies one item. Texts that were added to `index` are already in it. */
  take(item: HistoryItem): void {
    switch (item.kind) {
      case 'label':
        this.#names = undefined
        return this.#enter(this.#labels, item)
      case 'tuple':
        return this.#enter(this.#tuples, item)
      case 'unkept':
        this.#unkept.set(item.text, item.atMs)
        this.#noted = undefined
        return
      default:
        this.index.restore([{ origin: item.kind, text: item.text, full: item.text === '' }])
    }
  }

  #enter(entries: Map<string, RunEvent>, { text, event, tool, again, atMs, expiresAt = Infinity }: HistoryItem): void {
    const entry = entries.get(text)
    if (!entry || entry.expiresAt <= atMs) {
      if (!entry) this.#bytes += ENTRY_BYTES + text.length
      const calls = tool === undefined ? [] : [{ tool, atMs }]
      entries.set(text, { event, others: again === true, sinceMs: atMs, atMs, expiresAt, calls })
      return
    }
    if (event !== entry.event) entry.others = true
    entry.atMs = Math.max(entry.atMs, atMs)
    entry.expiresAt = Math.max(entry.expiresAt, expiresAt)
    if (tool === undefined || entry.calls.length >= MAX_TOOLS || entry.calls.some((call) => call.tool === tool)) return
    entry.calls.push({ tool, atMs })
    this.#bytes += tool.length
  }

  /** Returns whether several attempts have recently raised these labels, so that raising them again adds nothing. */
  areUp(labels: readonly string[], nowMs: number): boolean {
    for (const label of labels) {
      const entry = this.#labels.get(label)
      if (!entry?.others || entry.expiresAt <= nowMs) return false
      if (this.lifetimes.labelMs !== Infinity && nowMs - entry.atMs >= REFRESH_MS) return false
    }
    return true
  }

  /** Returns the note that the history is incomplete from now on; none if that was noted recently. */
  notesOfLoss(nowMs: number): readonly HistoryItem[] {
    const sinceMs = this.#unkept.get(EVERYTHING)
    const isNoted = sinceMs !== undefined && (this.lifetimes.labelMs === Infinity || nowMs - sinceMs < REFRESH_MS)
    return isNoted ? NOTHING : [{ kind: 'unkept', text: EVERYTHING, atMs: nowMs }]
  }

  /** Returns whether a writer that keeps these facts has nothing to note. See `notesFor`. */
  hasNoted(keeps: ReadonlySet<string>, nowMs: number): boolean {
    return this.#noted?.keeps === keeps && nowMs < this.#noted.untilMs
  }

  /** Returns the items to store for a label or a tuple; none if they add nothing new. */
  itemsFor(
    kind: 'label' | 'tuple',
    text: string,
    tool: string | undefined,
    { event, nowMs }: Moment,
    lifeMs: number,
  ): readonly HistoryItem[] {
    const entry = (kind === 'label' ? this.#labels : this.#tuples).get(text)
    const isLive = entry !== undefined && entry.expiresAt > nowMs
    if (isLive) {
      const refreshed = lifeMs === Infinity || nowMs - entry.atMs < REFRESH_MS
      if (entry.event === event || (entry.others && refreshed)) return NOTHING
    } else if (kind === 'tuple' && this.#bytes >= this.#bounds.maxBytes)
      return this.#unkept.has(ALL_CALLS) ? [] : [{ kind: 'unkept', text: ALL_CALLS, atMs: nowMs }]
    return [
      {
        kind,
        text,
        event,
        ...(tool !== undefined && { tool }),
        atMs: nowMs,
        ...(isLive && { again: true }),
        ...(lifeMs !== Infinity && { expiresAt: nowMs + lifeMs }),
      },
    ]
  }

  /** Returns whether everything about a key is known. */
  knows(key: string, nowMs: number, lifeMs: number): boolean {
    return !this.#isUnkept(EVERYTHING, nowMs, lifeMs) && !this.#isUnkept(key, nowMs, lifeMs) && this.#began(key)
  }

  /** Returns whether a key is kept, from the beginning or since a note. */
  #began(key: string): boolean {
    return this.kept.has(key) || this.#unkept.has(key)
  }

  #isUnkept(key: string, nowMs: number, lifeMs: number): boolean {
    const sinceMs = this.#unkept.get(key)
    return sinceMs !== undefined && nowMs < sinceMs + lifeMs
  }

  /** Returns notes about what this history did not keep until now, or what the writer does not keep. */
  notesFor(keeps: ReadonlySet<string>, nowMs: number): readonly HistoryItem[] {
    if (this.hasNoted(keeps, nowMs)) return NOTHING
    const missed = [...keeps].filter((key) => !this.#began(key))
    const stopped = [...this.kept, ...this.#unkept.keys()].filter(
      (key) =>
        key !== EVERYTHING &&
        key !== ALL_CALLS &&
        !keeps.has(key) &&
        nowMs - (this.#unkept.get(key) ?? -Infinity) >= REFRESH_MS,
    )
    const notes = [...new Set([...missed, ...stopped])]
    if (notes.length === 0) this.#noted = { keeps, untilMs: nowMs + REFRESH_MS }
    return notes.map((text) => ({ kind: 'unkept', text, atMs: nowMs }))
  }

  /** Returns the labels that attempts other than this one raised; `undefined` if unknown. */
  labels({ event, nowMs }: Moment): readonly string[] | undefined {
    if (this.#isUnkept(EVERYTHING, nowMs, this.lifetimes.labelMs)) return undefined
    for (const entry of this.#labels.values())
      if (!entry.others && entry.event === event) return this.#labelsWithout(event, nowMs)
    return this.#allLabels(nowMs)
  }

  #allLabels(nowMs: number): readonly string[] {
    if (this.#names && nowMs < this.#names.untilMs) return this.#names.labels
    const labels = this.#labelsWithout(undefined, nowMs)
    const untilMs = labels.reduce((until, label) => Math.min(until, this.#labels.get(label)?.expiresAt ?? 0), Infinity)
    this.#names = { labels, untilMs }
    return labels
  }

  #labelsWithout(event: string | undefined, nowMs: number): readonly string[] {
    return [...this.#labels]
      .filter(([, entry]) => entry.expiresAt > nowMs && (entry.others || event === undefined || entry.event !== event))
      .map(([label]) => label)
      .toSorted()
  }

  matched(pattern: CallPattern, values: readonly unknown[], { event, nowMs }: Moment): boolean {
    const hash = hashOfTuple(pattern, values)
    if (hash === undefined) return false
    const entry = this.#tuples.get(hash)
    if (entry && entry.expiresAt > nowMs && (entry.others || entry.event !== event)) return true
    if (pattern.event === 'called') return false
    const { labelMs } = this.lifetimes
    return !this.knows(pattern.key, nowMs, labelMs) || this.#isUnkept(ALL_CALLS, nowMs, labelMs)
  }

  origin(value: unknown, nowMs: number, work?: Work): Origin {
    const found = this.index.originOf(value, work)
    return found === 'user' || this.knows(ORIGINS_KEPT, nowMs, this.lifetimes.labelMs) ? found : 'untrusted'
  }

  /** Returns calls that raised a label. */
  raisedBy(label: string): readonly EarlierCall[] {
    return [...(this.#labels.get(label)?.calls ?? [])]
  }

  /** Returns calls that matched. */
  matchedBy(pattern: CallPattern, values: readonly unknown[]): readonly EarlierCall[] {
    const hash = hashOfTuple(pattern, values)
    return hash === undefined ? [] : [...(this.#tuples.get(hash)?.calls ?? [])]
  }

  /** Returns the raised labels, for people. */
  raised(nowMs: number): readonly RaisedLabel[] {
    return [...this.#labels].flatMap(([label, { sinceMs, atMs, expiresAt, calls }]) =>
      expiresAt > nowMs ? [{ label, sinceMs, latestMs: atMs, calls: [...calls] }] : [],
    )
  }
}
