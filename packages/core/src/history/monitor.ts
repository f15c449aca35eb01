import type { HistoryItem, HistoryMark, HistoryPart } from '../ports/history.ts'
import type { CallPattern } from './facts.ts'
import type { EarlierCall, Origin } from '../ports/fact-read.ts'
import type { Work } from '@toolgate/values'
import { hashOfTuple, ORIGINS_KEPT } from './rules.ts'
import { createOriginIndex, type OriginBounds, type OriginIndex } from './origins/origin-index.ts'

/** How long something counts, in milliseconds. In the history of a run: until its end. */
export interface Lifetimes {
  readonly calledMs: number
  /** Of labels, and of calls that began. */
  readonly labelMs: number
}

export interface MonitorBounds {
  /** Bytes, about, without texts. */
  readonly maxBytes: number
  readonly origins: OriginBounds
}

/** Something that happened, and who made it happen. */
interface Entry {
  /** The attempt that was the first. */
  readonly event: string | undefined
  /** Whether any other attempt has made it happen, too. */
  others: boolean
  readonly sinceMs: number
  atMs: number
  expiresAt: number
  readonly calls: EarlierCall[]
}

/** A label of a history. Times are wall-clock milliseconds. */
export interface RaisedLabel {
  readonly label: string
  /** When it rose. */
  readonly sinceMs: number
  /** When a call last raised it, to within a minute. */
  readonly latestMs: number
  /** Calls that raised it, of at most eight tools. */
  readonly calls: readonly EarlierCall[]
}

/** Names the whole history in an `unkept` item, and all calls. */
export const EVERYTHING = '*'
export const ALL_CALLS = 'calls'

const MAX_TOOLS = 8
const NOTHING: readonly HistoryItem[] = []
const ENTRY_BYTES = 160
/** How much earlier than it could something is refreshed, so that not each call writes. */
const REFRESH_MS = 60_000

/** Of which attempt, and when. */
export interface Moment {
  readonly event: string
  readonly nowMs: number
}

/**
 * The state of one history, made of its items: what has risen, which calls rules can still ask about, and what was seen. Its
 * answers leave out what only the asking attempt has done itself.
 */
export class Monitor {
  readonly kept: ReadonlySet<string>
  readonly lifetimes: Lifetimes
  readonly #bounds: MonitorBounds
  #mark: HistoryMark
  #bytes = 0
  readonly #labels = new Map<string, Entry>()
  readonly #tuples = new Map<string, Entry>()
  /** What is not kept from the beginning, with when it began to be. */
  readonly #unkept = new Map<string, number>()
  /** With which rules nothing had to be noted, and until when. */
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

  /** Takes in what others have added. */
  apply({ generation, version, items }: HistoryPart): void {
    this.#mark = { generation, version }
    for (const item of items) this.take(item)
  }

  /** Takes in one item. Texts that were added to `index` are in it already. */
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

  #enter(entries: Map<string, Entry>, { text, event, tool, again, atMs, expiresAt = Infinity }: HistoryItem): void {
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

  /** Whether others than any one attempt have raised these labels, and lately: raising them again says nothing. */
  areUp(labels: readonly string[], nowMs: number): boolean {
    for (const label of labels) {
      const entry = this.#labels.get(label)
      if (!entry?.others || entry.expiresAt <= nowMs) return false
      if (this.lifetimes.labelMs !== Infinity && nowMs - entry.atMs >= REFRESH_MS) return false
    }
    return true
  }

  /** Returns the note that something is missing from now on; none where that is noted, and lately. */
  notesOfLoss(nowMs: number): readonly HistoryItem[] {
    const sinceMs = this.#unkept.get(EVERYTHING)
    const isNoted = sinceMs !== undefined && (this.lifetimes.labelMs === Infinity || nowMs - sinceMs < REFRESH_MS)
    return isNoted ? NOTHING : [{ kind: 'unkept', text: EVERYTHING, atMs: nowMs }]
  }

  /** Whether there is nothing to note for a writer who keeps this: see `notesFor`. */
  hasNoted(keeps: ReadonlySet<string>, nowMs: number): boolean {
    return this.#noted?.keeps === keeps && nowMs < this.#noted.untilMs
  }

  /** Returns the items that a label or a tuple takes: none if it would say nothing new. */
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

  /** Whether everything that has happened about a key is known. */
  knows(key: string, nowMs: number, lifeMs: number): boolean {
    return !this.#isUnkept(EVERYTHING, nowMs, lifeMs) && !this.#isUnkept(key, nowMs, lifeMs) && this.#began(key)
  }

  /** Whether it is kept, from the beginning or since it was noted. */
  #began(key: string): boolean {
    return this.kept.has(key) || this.#unkept.has(key)
  }

  #isUnkept(key: string, nowMs: number, lifeMs: number): boolean {
    const sinceMs = this.#unkept.get(key)
    return sinceMs !== undefined && nowMs < sinceMs + lifeMs
  }

  /** Returns the notes about what this history has not kept until now, or what the writer does not keep. */
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

  /** Returns the labels that others than this attempt have raised; `undefined` if nobody knows. */
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

  /** Returns what has risen: for people. */
  raised(nowMs: number): readonly RaisedLabel[] {
    return [...this.#labels].flatMap(([label, { sinceMs, atMs, expiresAt, calls }]) =>
      expiresAt > nowMs ? [{ label, sinceMs, latestMs: atMs, calls: [...calls] }] : [],
    )
  }
}
