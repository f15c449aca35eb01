import { UnknownToolError } from '../errors.ts'

/** Longest name that is compared letter by letter; longer ones are cut. */
const MAX_LENGTH = 64

/** Most names that are compared letter by letter: ten thousand of them would take a tenth of a second. */
const MAX_COMPARED = 200

/** Gives the `count` names most like the one asked for, the most alike first. Equal distances keep the names' order. */
export function nearestNames(asked: string, names: readonly string[], count: number): readonly string[] {
  if (names.length <= 1) return names.slice(0, count)
  const ranked = likelyNames(asked, names).map((name, order) => ({ name, order, distance: editDistance(asked, name) }))
  ranked.sort((a, b) => a.distance - b.distance || a.order - b.order)
  return ranked.slice(0, count).map(({ name }) => name)
}

const MAX_HINTS = 3
/** Unknown names that one error names; more of them say nothing new. */
const MAX_UNKNOWN = 20

/** Returns the error for names that are unknown, each with the known names nearest to it. */
export function unknownTools(unknown: readonly string[], known: readonly string[]): UnknownToolError {
  const [first = '', ...rest] = new Set(unknown)
  return new UnknownToolError(
    first,
    nearestNames(first, known, MAX_HINTS),
    rest.slice(0, MAX_UNKNOWN - 1).map((tool) => ({ tool, nearest: nearestNames(tool, known, MAX_HINTS) })),
  )
}

/** Gives the names that share the longest beginning and end with the one asked for, in the names' order. */
function likelyNames(asked: string, names: readonly string[]): readonly string[] {
  if (names.length <= MAX_COMPARED) return names
  const shared = names.map((name) => sharedLength(asked, name))
  const least = shared.toSorted((a, b) => b - a)[MAX_COMPARED - 1] as number
  let spare = MAX_COMPARED - shared.filter((length) => length > least).length
  return names.filter((_, i) => (shared[i] as number) > least || (shared[i] === least && spare-- > 0))
}

function sharedLength(a: string, b: string): number {
  const max = Math.min(a.length, b.length, MAX_LENGTH)
  let start = 0
  while (start < max && a[start] === b[start]) start++
  let end = 0
  while (end < max - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++
  return start + end
}

/** Levenshtein's distance between the first 64 characters of two names. */
function editDistance(a: string, b: string): number {
  const height = Math.min(a.length, MAX_LENGTH)
  const width = Math.min(b.length, MAX_LENGTH)
  for (let j = 0; j <= width; j++) row[j] = j
  for (let i = 1; i <= height; i++) {
    const unit = a.charCodeAt(i - 1)
    let diagonal = i - 1
    let left = i
    for (let j = 1; j <= width; j++) {
      const above = row[j] as number
      const substituted = unit === b.charCodeAt(j - 1) ? diagonal : diagonal + 1
      const moved = (left < above ? left : above) + 1
      left = substituted < moved ? substituted : moved
      diagonal = above
      row[j] = left
    }
  }
  return width === 0 ? height : (row[width] as number)
}

/** One row of the table, used again and again: this runs for every visible tool at each refusal. */
const row = new Uint8Array(MAX_LENGTH + 1)
