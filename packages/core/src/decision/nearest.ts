/** Longest name that is compared letter by letter; longer ones are cut. */
const MAX_LENGTH = 64

/** Gives the `count` names most like the one asked for, the most alike first. Equal distances keep the names' order. */
export function nearestNames(asked: string, names: readonly string[], count: number): readonly string[] {
  if (names.length <= 1) return names.slice(0, count)
  const ranked = names.map((name, order) => ({ name, order, distance: editDistance(asked, name) }))
  ranked.sort((a, b) => a.distance - b.distance || a.order - b.order)
  return ranked.slice(0, count).map(({ name }) => name)
}

/** Levenshtein's distance between the first 64 characters of two names. */
function editDistance(a: string, b: string): number {
  const x = a.slice(0, MAX_LENGTH)
  const y = b.slice(0, MAX_LENGTH)
  let row = Array.from({ length: y.length + 1 }, (_, i) => i)
  for (let i = 1; i <= x.length; i++) {
    const next = [i]
    for (let j = 1; j <= y.length; j++) {
      const substitution = (row[j - 1] as number) + (x[i - 1] === y[j - 1] ? 0 : 1)
      next.push(Math.min(substitution, (row[j] as number) + 1, (next[j - 1] as number) + 1))
    }
    row = next
  }
  return row[y.length] as number
}
