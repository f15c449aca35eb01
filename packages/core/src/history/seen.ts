import type { HistoryItem } from '../ports/history.ts'
import type { Origin } from './facts.ts'

/** A text of an origin, for a store. `full`: there was more than there is room for. */
export interface SeenItem {
  readonly origin: 'user' | 'trusted' | 'untrusted'
  readonly text: string
  readonly full: boolean
}

/** The texts that a run has seen, and where they come from. */
export interface SeenTexts {
  /** Each returns what is new. */
  addWords(words: string | readonly string[]): readonly SeenItem[]
  addOutput(origin: 'trusted' | 'untrusted', output: unknown): readonly SeenItem[]
  originOf(value: unknown): Origin
  restore(items: Iterable<SeenItem>): void
}

export function toHistoryItems(seen: readonly SeenItem[], atMs: number): readonly HistoryItem[] {
  return seen.map(({ origin, text, full }) => ({ kind: origin, text: full ? '' : text, atMs }))
}

/** Knows no text: every value is untrusted. */
export function createSeenTexts(): SeenTexts {
  return { addWords: () => [], addOutput: () => [], originOf: () => 'untrusted', restore: () => {} }
}
