import { checkShape, shapeOf, type Work } from '@toolgate/values'
import type { Origin } from '../../ports/fact-read.ts'
import { addressesIn } from './addresses-in.ts'
import { toExact, toFoldedForms } from './normalise.ts'
import { SeenText } from './seen-text.ts'
import { stringsIn } from './strings-in.ts'
import { holdsWhole, holdsWords } from './token-ends.ts'
import { worstOf } from './worst-of.ts'

/** The origins of seen texts. A value that is in no text is `unknown`. */
const SEEN_ORIGINS = ['user', 'trusted', 'untrusted'] as const
type SeenOrigin = (typeof SEEN_ORIGINS)[number]

/** Texts that an index has added, for a store. `full` means that there was more. */
export interface OriginItem {
  readonly origin: SeenOrigin
  /** Normalised by the index, one text per line. */
  readonly text: string
  readonly full: boolean
}

/** Bytes, including filters. */
export interface OriginBounds {
  /** Default 48 kB. Further words are not the user's. */
  readonly user?: number
  /** Default 64 kB. Further outputs are not trusted. */
  readonly trusted?: number
  /** Default 144 kB. Beyond it, all other values are untrusted. */
  readonly untrusted?: number
}

/**
 * The texts that a run has seen: the words of its user, and outputs.
 *
 * Nothing is evicted, because a flood of text could then clear an address. Every error is on the strict side.
 */
export interface OriginIndex {
  /** Adds words of the user. Returns the new ones. */
  addWords(words: string | readonly string[]): readonly OriginItem[]
  /** Adds all texts of an output. Returns the new ones. */
  addOutput(origin: 'trusted' | 'untrusted', output: unknown): readonly OriginItem[]
  /**
   * Returns the worst origin of the values within a value; `unknown` if there are none. `null`, `undefined` and empty
   * values do not count. Counts each search in `work`; if its steps run out, the answer is `untrusted`.
   */
  originOf(value: unknown, work?: Work): Origin
  /** Whether there was no room for an untrusted text. */
  readonly full: boolean
  /** Bytes. */
  readonly size: number
  items(): readonly OriginItem[]
  /** Adds items of this or another index, in the order in which they were made. */
  restore(items: Iterable<OriginItem>): void
}

const BOUNDS = shapeOf<OriginBounds>({ user: true, trusted: true, untrusted: true })
const KB = 1024

export function createOriginIndex(bounds: OriginBounds = {}): OriginIndex {
  checkShape('createOriginIndex', bounds, BOUNDS)
  return new Origins(bounds)
}

/** Steps of one search in all seen texts, besides the characters of the sought text. */
const STEPS_OF_LOOK = 2000
/** The step budget outside of conditions. */
const MAX_STEPS = 5_000_000
/** Longer outputs are not read, because they would not fit. */
const MAX_OUTPUT_CHARS = 512 * KB
/** A known text is not added again. Beyond this number of texts, the others are not compared. */
const MAX_COMPARED = 1000

class Origins implements OriginIndex {
  readonly #seen: Readonly<Record<SeenOrigin, SeenText>>

  constructor({ user = 48 * KB, trusted = 64 * KB, untrusted = 144 * KB }: OriginBounds) {
    this.#seen = { user: new SeenText(user), trusted: new SeenText(trusted), untrusted: new SeenText(untrusted) }
  }

  get full(): boolean {
    return this.#seen.untrusted.full
  }

  get size(): number {
    return SEEN_ORIGINS.reduce((bytes, origin) => bytes + this.#seen[origin].bytes, 0)
  }

  addWords(words: string | readonly string[]): readonly OriginItem[] {
    return this.#add('user', stringsIn(words, MAX_OUTPUT_CHARS))
  }

  addOutput(origin: 'trusted' | 'untrusted', output: unknown): readonly OriginItem[] {
    // Untrusted texts are missing, so a trusted output may repeat one of them.
    if (this.full) return []
    return this.#add(origin, stringsIn(output, MAX_OUTPUT_CHARS))
  }

  #add(origin: SeenOrigin, texts: ReadonlySet<string> | undefined): readonly OriginItem[] {
    const seen = this.#seen[origin]
    if (seen.full) return []
    const lines = texts && linesOf(origin, texts).filter((line, i) => i >= MAX_COMPARED || !isHeld(seen, origin, line))
    if (lines?.length === 0) return []
    const text = lines?.join('\n') ?? ''
    const full = lines === undefined || !seen.add(text)
    if (full) seen.close()
    return [{ origin, text: full ? '' : text, full }]
  }

  items(): readonly OriginItem[] {
    return SEEN_ORIGINS.map((origin) => ({
      origin,
      text: this.#seen[origin].text,
      full: this.#seen[origin].full,
    })).filter(({ text, full }) => text !== '' || full)
  }

  restore(items: Iterable<OriginItem>): void {
    for (const { origin, text, full } of items) {
      if (text !== '') this.#seen[origin].add(text)
      if (full) this.#seen[origin].close()
    }
  }

  originOf(value: unknown, work: Work = { left: MAX_STEPS }): Origin {
    const found = worstOf(value, (text, isText) => this.#originOfText(text, isText, work))
    return found ?? (this.full ? 'untrusted' : 'unknown')
  }

  #originOfText(text: string, isText: boolean, work: Work): Origin {
    work.left -= STEPS_OF_LOOK + text.length
    if (work.left < 0) return 'untrusted'
    const exact = isText ? toExact(text) : ''
    const mayLoosen = isText && isLikeAddress(exact)
    if (mayLoosen && holdsWhole(this.#seen.user, exact, work)) return 'user'
    if (this.#isUntrusted(text, work)) return 'untrusted'
    if (mayLoosen && holdsWhole(this.#seen.trusted, exact, work)) return 'trusted'
    return this.full ? 'untrusted' : 'unknown'
  }

  #isUntrusted(text: string, work: Work): boolean {
    const addresses = addressesIn(text)
    if (!addresses) return true
    const seen = this.#seen.untrusted
    if (seen.text === '') return false
    if (work.left < 0 || toFoldedForms(text).some((form) => seen.includes(form, work))) return true
    for (const address of addresses) {
      work.left -= STEPS_OF_LOOK + address.length
      if (work.left < 0 || toFoldedForms(address).some((form) => seen.includes(form, work))) return true
    }
    return false
  }
}

function linesOf(origin: SeenOrigin, texts: ReadonlySet<string>): readonly string[] {
  const lines = new Set<string>()
  for (const text of texts) {
    if (origin !== 'untrusted') lines.add(toExact(text))
    else for (const form of toFoldedForms(text)) lines.add(form)
  }
  const minLength = origin === 'untrusted' ? 1 : MIN_CHARS
  return [...lines].filter(({ length }) => length >= minLength)
}

function isHeld(seen: SeenText, origin: SeenOrigin, line: string): boolean {
  return origin === 'untrusted' ? seen.includes(line) : holdsWords(seen, line)
}

const MIN_CHARS = 4
const MIN_DIGITS = 8
const MIN_WORD = /^.{4}/u

/** Amounts, dates and short words occur in texts by chance. An account or telephone number does not. */
function isLikeAddress(exact: string): boolean {
  return MIN_WORD.test(exact) && (/\p{L}/u.test(exact) || exact.replace(/\D/g, '').length >= MIN_DIGITS)
}
