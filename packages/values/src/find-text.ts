/**
 * The engine searches for short texts in linear time. For longer ones it may compare the whole length again at each
 * character, so this module searches for them.
 */
const MAX_SHORT = 64

/** Searches a text from an offset on; returns -1 if it is not found. */
type FindText = (text: string, from: number) => number

/** Returns a search that takes linear time for any two texts. */
export function createFind(wanted: string): FindText {
  if (wanted.length <= MAX_SHORT) return (text, from) => text.indexOf(wanted, from)
  const fallback = fallbacksOf(wanted)
  return (text, from) => {
    let matched = 0
    for (let i = from; i < text.length; i++) {
      matched = advance(wanted, fallback, matched, text.charCodeAt(i))
      if (matched === wanted.length) return i - matched + 1
    }
    return -1
  }
}

/** Searches a text once. */
export function findText(text: string, wanted: string, from: number): number {
  return wanted.length <= MAX_SHORT ? text.indexOf(wanted, from) : createFind(wanted)(text, from)
}

/** Yields all offsets at which a text occurs in another, in linear time. Matches may overlap. */
export function* findEach(text: string, wanted: string): Generator<number> {
  if (wanted.length <= MAX_SHORT) {
    for (let at = text.indexOf(wanted); at !== -1; at = text.indexOf(wanted, at + 1)) yield at
    return
  }
  const fallback = fallbacksOf(wanted)
  let matched = 0
  for (let i = 0; i < text.length; i++) {
    matched = advance(wanted, fallback, matched, text.charCodeAt(i))
    if (matched < wanted.length) continue
    yield i - matched + 1
    matched = fallback[matched] ?? 0
  }
}

/** Returns the last offset, up to `to`, at which a text occurs in another; -1 if it is not found. */
export function findLast(text: string, wanted: string, to: number): number {
  if (wanted === '') return Math.min(to, text.length)
  const fallback = fallbacksOf(wanted)
  const end = Math.min(text.length, to + wanted.length)
  let [found, matched] = [-1, 0]
  for (let i = 0; i < end; i++) {
    matched = advance(wanted, fallback, matched, text.charCodeAt(i))
    if (matched < wanted.length) continue
    found = i - matched + 1
    matched = fallback[matched] ?? 0
  }
  return found
}

/** Returns the length of the match after one more character (Knuth, Morris and Pratt). */
function advance(wanted: string, fallback: Int32Array, before: number, unit: number): number {
  let matched = before
  while (matched > 0 && wanted.charCodeAt(matched) !== unit) matched = fallback[matched] as number
  return wanted.charCodeAt(matched) === unit ? matched + 1 : matched
}

/** For each prefix length: the length of the longest shorter prefix that the prefix ends with. */
function fallbacksOf(wanted: string): Int32Array {
  const fallback = new Int32Array(wanted.length + 1)
  for (let i = 1; i < wanted.length; i++)
    fallback[i + 1] = advance(wanted, fallback, fallback[i] as number, wanted.charCodeAt(i))
  return fallback
}
