/** Returns at most `max` UTF-16 units of a text. A cut text ends in `…`, and no character is split. */
export function cut(text: string, max: number): string {
  if (text.length <= max) return text
  return `${text.slice(0, max - 1).replace(/[\uD800-\uDBFF]$/, '')}…`
}

/** Returns `U+` and at least four hexadecimal digits for a character. */
export function formatCodePoint(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`
}

/** Returns the different characters of a text that are not ASCII, as code points. */
export function formatNonAscii(text: string): readonly string[] {
  return [...new Set(text)].filter((character) => character > '~').map(formatCodePoint)
}

/** Returns `; did you mean "policy"?` for a misspelt word; an empty text if no known word is similar. */
export function didYouMean(word: string, known: Iterable<string>): string {
  const nearest = nearestOf(word, known)
  return nearest === undefined ? '' : `; did you mean "${nearest}"?`
}

/**
 * Returns the nearest known word. At most `maxEdits` letters may differ, by default a third of them. Letter case and
 * plurals are ignored.
 */
export function nearestOf(
  word: string,
  known: Iterable<string>,
  maxEdits = Math.max(1, Math.floor(word.length / 3)),
): string | undefined {
  const asked = word.toLowerCase()
  let best: string | undefined
  let bestDistance = maxEdits + 1
  for (const candidate of known) {
    const other = candidate.toLowerCase()
    const distance = Math.min(
      editDistance(asked, other, bestDistance),
      editDistance(singularOf(asked), singularOf(other), bestDistance),
    )
    if (distance < bestDistance && distance < candidate.length) {
      best = candidate
      bestDistance = distance
    }
  }
  return best
}

function singularOf(word: string): string {
  if (word.length > 4 && word.endsWith('ies')) return `${word.slice(0, -3)}y`
  return word.length > 3 && word.endsWith('s') && !word.endsWith('ss') ? word.slice(0, -1) : word
}

/** The most characters of a name that are compared. */
const MAX_LENGTH = 64
/** The most names that are compared, because comparing ten thousand would take a tenth of a second. */
const MAX_COMPARED = 200

/** Returns the `count` nearest names, the nearest first. Equally near names keep their order. */
export function nearestNames(asked: string, names: readonly string[], count: number): readonly string[] {
  if (names.length <= 1) return names.slice(0, count)
  const start = asked.slice(0, MAX_LENGTH)
  const ranked = likelyNames(asked, names).map((name) => ({
    name,
    distance: editDistance(start, name.slice(0, MAX_LENGTH)),
  }))
  ranked.sort((a, b) => a.distance - b.distance)
  return ranked.slice(0, count).map(({ name }) => name)
}

/** Returns the names that share the longest prefix and suffix with the requested one, in the order of `names`. */
function likelyNames(asked: string, names: readonly string[]): readonly string[] {
  if (names.length <= MAX_COMPARED) return names
  const shared = names.map((name) => ({ name, length: sharedLength(asked, name) }))
  const least = shared.toSorted((a, b) => b.length - a.length)[MAX_COMPARED - 1]?.length ?? 0
  let spare = MAX_COMPARED - shared.filter(({ length }) => length > least).length
  return shared.filter(({ length }) => length > least || (length === least && spare-- > 0)).map(({ name }) => name)
}

function sharedLength(a: string, b: string): number {
  const max = Math.min(a.length, b.length, MAX_LENGTH)
  let start = 0
  while (start < max && a[start] === b[start]) start++
  let end = 0
  while (end < max - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++
  return start + end
}

/**
 * Returns the number of insertions, deletions, replacements and swaps of neighbours between two texts (optimal string
 * alignment). Returns `limit` if it is at least that.
 */
export function editDistance(a: string, b: string, limit = Infinity): number {
  if (Math.abs(a.length - b.length) >= limit) return limit
  let [beforeLast, last, row] = b.length <= MAX_LENGTH ? SHORT_ROWS : rowsFor(b.length)
  for (let j = 0; j <= b.length; j++) row[j] = j
  for (let i = 1; i <= a.length; i++) {
    const next = beforeLast
    beforeLast = last
    last = row
    row = next
    fillRow(row, last, beforeLast, a, b, i)
  }
  return Math.min(row[b.length] ?? 0, limit)
}

type DistanceRows = readonly [Uint32Array, Uint32Array, Uint32Array]

function rowsFor(length: number): DistanceRows {
  return [new Uint32Array(length + 1), new Uint32Array(length + 1), new Uint32Array(length + 1)]
}

/** Reused, because this runs for every visible tool at each refusal. */
const SHORT_ROWS: DistanceRows = rowsFor(MAX_LENGTH)

function fillRow(row: Uint32Array, last: Uint32Array, beforeLast: Uint32Array, a: string, b: string, i: number): void {
  const unit = a.charCodeAt(i - 1)
  const unitBefore = a.charCodeAt(i - 2)
  let left = (row[0] = i)
  let diagonal = i - 1
  for (let j = 1; j <= b.length; j++) {
    const above = last[j] ?? 0
    const other = b.charCodeAt(j - 1)
    let cost = unit === other ? diagonal : diagonal + 1
    const moved = (left < above ? left : above) + 1
    if (moved < cost) cost = moved
    if (i > 1 && j > 1 && unit === b.charCodeAt(j - 2) && unitBefore === other) {
      const swapped = (beforeLast[j - 2] ?? 0) + 1
      if (swapped < cost) cost = swapped
    }
    diagonal = above
    left = row[j] = cost
  }
}
