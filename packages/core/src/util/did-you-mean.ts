/** Returns `; did you mean "policy"?` for a misspelt word, or an empty text when no known word is near it. */
export function didYouMean(word: string, known: Iterable<string>): string {
  const nearest = nearestOf(word, known)
  return nearest === undefined ? '' : `; did you mean "${nearest}"?`
}

/**
 * Returns the nearest known word. At most `maxEdits` letters may differ, by default a third of them; letter case and a
 * plural do not count.
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

/** Counts insertions, deletions, replacements and swaps of neighbours (optimal string alignment). */
function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) >= limit) return limit
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = at(last, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1)
      let cost = Math.min(at(last, j) + 1, at(row, j - 1) + 1, replaced)
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        cost = Math.min(cost, at(beforeLast, j - 2) + 1)
      row.push(cost)
    }
    beforeLast = last
    last = row
  }
  return at(last, b.length)
}

function at(row: readonly number[], index: number): number {
  return row[index] as number
}
