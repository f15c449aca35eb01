import { count, formatNumber } from './format.ts'
import type { ClauseRow, PolicyBody } from './wire.ts'

/** A line of the policy, with the clauses that begin in it. */
export interface PolicyLine {
  /** The line number in the file. */
  readonly number: number
  readonly text: string
  readonly clauses: readonly ClauseRow[]
}

/** Returns the lines of the policy's text, or none for people who may not see them. */
export function toLines({ text, line = 1, file, clauses }: PolicyBody): readonly PolicyLine[] {
  if (text === undefined) return []
  const placed = Map.groupBy(clauses, ({ place }) => (isIn(file, place?.file) ? place?.line : undefined))
  return text
    .split('\n')
    .map((one, i) => ({ number: line + i, text: one.replace(/\r$/, ''), clauses: placed.get(line + i) ?? [] }))
}

/** Returns the clauses without a line: those of apps, and all clauses if the text is hidden. */
export function toUnplaced(body: PolicyBody, lines: readonly PolicyLine[]): readonly ClauseRow[] {
  const placed = new Set(lines.flatMap(({ clauses }) => clauses))
  return body.clauses.filter((clause) => !placed.has(clause))
}

/** Whether two names refer to the same file. One of them may be relative. */
function isIn(file: string | undefined, name: string | undefined): boolean {
  return file === undefined || name === undefined || file.endsWith(name) || name.endsWith(file)
}

/** Returns notes that a reader of the counts must know. */
export function notesOn({ text = '', countsAreOwn }: Pick<PolicyBody, 'text' | 'countsAreOwn'>): readonly string[] {
  return [
    ...(countsAreOwn
      ? ['The state store does not answer. Hits are those that this process has counted since its start.']
      : []),
    ...(/^[^#]*\brequireTags\b/m.test(text)
      ? ['requireTags has no hits, as it is no clause: Calls finds its refusals by the reason policy_tag_missing.']
      : []),
  ]
}

export const SHOWN = ['idle', 'unmatched', 'shadow'] as const
type ShownPart = (typeof SHOWN)[number]

/** The filters of the page. */
export const WORDS: Readonly<Record<ShownPart, string>> = {
  idle: 'Never held',
  unmatched: 'Match nothing',
  shadow: 'Shadows',
}

const IS: Readonly<Record<ShownPart, (clause: ClauseRow) => boolean>> = {
  idle: ({ hits }) => hits === 0,
  unmatched: ({ matchesTools }) => matchesTools === 0,
  shadow: ({ shadow = false }) => shadow,
}

/** Returns whether the page shows a clause. Without a filter it shows all. */
export function isShown(shown: string, clause: ClauseRow): boolean {
  const name = SHOWN.find((one) => one === shown)
  return name === undefined || IS[name](clause)
}

const WOULD = { deny: 'refused', ask: 'asked about', allow: 'allowed' } as const

/**
 * Returns the matches of a clause: `held for 3 calls`, or for a shadow `would have refused 3 calls, could not judge 1
 * call`.
 */
export function wordsOfHits({
  ref,
  hits,
  unjudged,
  shadow,
}: Pick<ClauseRow, 'ref' | 'hits' | 'unjudged' | 'shadow'>): string {
  const unknown = unjudged === undefined ? '' : `, could not judge ${calls(unjudged)}`
  if (shadow) return `would have ${WOULD[ref.kind]} ${hits === 0 ? 'no call' : calls(hits)}${unknown}`
  return hits === 0 ? 'never held' : `held for ${calls(hits)}`
}

function calls(n: number): string {
  return n === 1 ? count(n, 'call') : `${formatNumber(n)} calls`
}

/**
 * Returns the index of the line of a clause, or of the first clause of a list or a policy. The path comes from a
 * reason.
 */
export function findLine(lines: readonly PolicyLine[], path: string): number {
  const has = (test: (own: string) => boolean) =>
    lines.findIndex(({ clauses }) => clauses.some((one) => test(one.path)))
  const exact = has((own) => own === path)
  return exact >= 0 || path === '' ? exact : has((own) => own.startsWith(`${path}.`) || own.startsWith(`${path}[`))
}

/** A mistake in a text, in the format of `toolgate check`. Lines and columns start at 1. */
export interface PolicyProblem {
  readonly line?: number
  readonly column?: number
  readonly text: string
}

/** Splits the message about a refused text. Each line is a problem: `file:line:column: path: what`. */
export function toProblems(message: string): readonly PolicyProblem[] {
  return message
    .split('\n')
    .filter((one) => one.trim() !== '')
    .map((one) => {
      const [, line, column, text] = /^.*?:(\d+):(\d+): (.*)$/.exec(one) ?? []
      return text === undefined ? { text: one } : { line: Number(line), column: Number(column), text }
    })
}

/** Returns the offset of a line and a column in a text, at most the text's length. Both start at 1. */
export function offsetOf(text: string, line: number, column: number): number {
  let start = 0
  for (let i = 1; i < line; i++) {
    const end = text.indexOf('\n', start)
    if (end < 0) return text.length
    start = end + 1
  }
  const end = text.indexOf('\n', start)
  return Math.min(start + Math.max(column, 1) - 1, end < 0 ? text.length : end)
}
