export interface DiffLine {
  readonly kind: 'same' | 'removed' | 'added'
  readonly text: string
}

/** The maximum number of pairs of lines that are compared. */
const MAX_PAIRS = 1_000_000

/**
 * Returns the lines of two texts as a difference. It contains all lines of both.
 *
 * Very long texts are not compared: all old lines come before all new ones.
 * @example
 * diffLines('a\nb', 'a\nc') // same a, removed b, added c
 */
export function diffLines(before: string, after: string): readonly DiffLine[] {
  const [old, now] = [before.split('\n'), after.split('\n')]
  let start = 0
  while (start < Math.min(old.length, now.length) && old[start] === now[start]) start++
  let end = 0
  while (end < Math.min(old.length, now.length) - start && old.at(-1 - end) === now.at(-1 - end)) end++
  return [
    ...toLines('same', old.slice(0, start)),
    ...diffMiddle(old.slice(start, old.length - end), now.slice(start, now.length - end)),
    ...toLines('same', old.slice(old.length - end)),
  ]
}

/** A run of equal lines that is left out. */
export interface SkippedLines {
  readonly kind: 'skipped'
  readonly count: number
}

const CONTEXT = 3

/**
 * Returns the differing lines with some lines around them. Further equal lines are counted.
 * @example
 * changedLines(diffLines(before, after)) // 120 lines skipped, 3 same, removed, added, 3 same
 */
export function changedLines(lines: readonly DiffLine[]): readonly (DiffLine | SkippedLines)[] {
  const shown: (DiffLine | SkippedLines)[] = []
  let from = 0
  while (from < lines.length) {
    let to = from
    while (to < lines.length && lines[to]?.kind === 'same') to++
    const [before, after] = [from === 0 ? 0 : CONTEXT, to === lines.length ? 0 : CONTEXT]
    const count = to - from - before - after
    // A note about one skipped line would be as long as the line.
    if (count > 1)
      shown.push(...lines.slice(from, from + before), { kind: 'skipped', count }, ...lines.slice(to - after, to))
    else shown.push(...lines.slice(from, to))
    from = to
    while (from < lines.length && lines[from]?.kind !== 'same') shown.push(lines[from++] as DiffLine)
  }
  return shown
}

function toLines(kind: DiffLine['kind'], lines: readonly string[]): readonly DiffLine[] {
  return lines.map((text) => ({ kind, text }))
}

/** Returns the difference by the longest common subsequence, from a table of its lengths. */
function diffMiddle(old: readonly string[], now: readonly string[]): readonly DiffLine[] {
  if (old.length * now.length > MAX_PAIRS) return [...toLines('removed', old), ...toLines('added', now)]
  const width = now.length + 1
  const lengths = new Uint32Array((old.length + 1) * width)
  const at = (i: number, j: number): number => lengths[i * width + j] ?? 0
  for (let i = old.length - 1; i >= 0; i--)
    for (let j = now.length - 1; j >= 0; j--)
      lengths[i * width + j] = old[i] === now[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1))
  const lines: DiffLine[] = []
  let [i, j] = [0, 0]
  while (i < old.length || j < now.length) {
    const [removed, added] = [old[i], now[j]]
    if (removed !== undefined && removed === added) {
      lines.push({ kind: 'same', text: removed })
      i++
      j++
    } else if (removed !== undefined && (added === undefined || at(i + 1, j) >= at(i, j + 1))) {
      lines.push({ kind: 'removed', text: removed })
      i++
    } else {
      lines.push({ kind: 'added', text: added ?? '' })
      j++
    }
  }
  return lines
}
