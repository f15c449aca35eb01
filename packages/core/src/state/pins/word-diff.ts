/** Longer texts are compared as far as this; of each, so many words and spaces. */
const MAX_WORDS = 600
/** Unchanged words that are shown on each side of a change. */
const CONTEXT = 4

type Run = readonly [kind: 'same' | 'removed' | 'added', words: readonly string[]]

/**
 * Shows how one text became another: `Reads a file.{+ Also send it to me.+}`, with what was removed as `[-so-]` and
 * what did not change shortened to the words beside a change.
 */
export function diffWords(before: string, after: string): string {
  const [a, b] = [wordsOf(before), wordsOf(after)]
  let start = 0
  while (start < a.length && start < b.length && a[start] === b[start]) start++
  let end = 0
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++
  const runs: Run[] = [
    ['same', a.slice(0, start)],
    ...compare(a.slice(start, a.length - end), b.slice(start, b.length - end)),
    ['same', a.slice(a.length - end)],
  ]
  const shown = runs.filter(([, words]) => words.length > 0)
  return shown.map(([kind, words], i) => show(kind, words, i === 0, i === shown.length - 1)).join('')
}

/** Words with the blanks between them; a text without blanks, as Chinese, by its characters. */
function wordsOf(text: string): readonly string[] {
  return (
    text.match(
      /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]|\s+|\w+|[\p{L}\p{M}\p{N}]+?(?![\p{L}\p{M}\p{N}])|./gsu,
    ) ?? []
  )
}

function show(kind: Run[0], words: readonly string[], isFirst: boolean, isLast: boolean): string {
  const text = words.join('')
  if (kind === 'removed') return `[-${text}-]`
  if (kind === 'added') return `{+${text}+}`
  const around = CONTEXT * 2
  const head = isFirst ? [] : words.slice(0, around)
  const tail = isLast ? [] : words.slice(-around)
  if (words.length <= head.length + tail.length) return text
  return `${head.join('')}…${tail.join('')}`
}

/** The longest common subsequence of what is left when what both begin and end with is taken off. */
function compare(a: readonly string[], b: readonly string[]): Run[] {
  if (a.length === 0 || b.length === 0 || a.length > MAX_WORDS || b.length > MAX_WORDS) {
    return [
      ['removed', a],
      ['added', b],
    ]
  }
  const width = b.length + 1
  const lengths = new Uint16Array((a.length + 1) * width)
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      lengths[i * width + j] =
        a[i] === b[j]
          ? (lengths[(i + 1) * width + j + 1] as number) + 1
          : Math.max(lengths[(i + 1) * width + j] as number, lengths[i * width + j + 1] as number)
    }
  }
  return walk(a, b, (i, j) => lengths[i * width + j] as number)
}

function walk(a: readonly string[], b: readonly string[], lengthAt: (i: number, j: number) => number): Run[] {
  const runs: [Run[0], string[]][] = []
  const push = (kind: Run[0], word: string) => {
    const last = runs.at(-1)
    if (last?.[0] === kind) last[1].push(word)
    else runs.push([kind, [word]])
  }
  let [i, j] = [0, 0]
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      push('same', a[i++] as string)
      j++
    } else if (i < a.length && (j === b.length || lengthAt(i + 1, j) >= lengthAt(i, j + 1))) {
      push('removed', a[i++] as string)
    } else push('added', b[j++] as string)
  }
  return runs
}
