import type { MissedExpectation, PolicyTestReport } from '@toolgate/core/change'
import { clauseText } from '@toolgate/core/internal'
import type { PolicyTestFile } from '@toolgate/gateway'

/** The results of one file. */
export interface FileResults {
  readonly file: string
  readonly tests: readonly TestRow[]
}

/** The result of one test, with the places of what it missed. */
export interface TestRow {
  readonly shows: string
  readonly ok: boolean
  readonly missed: readonly MissedRow[]
}

export interface MissedRow {
  readonly line: number
  readonly column: number
  /** Such as `expect.call files:write_file`. */
  readonly what: string
  readonly expected: string
  readonly found: string
  readonly because: readonly string[]
}

/** Returns the results of a file as rows. */
export function toRows({ file, placeOf }: PolicyTestFile, { results }: PolicyTestReport): FileResults {
  const tests = results.map(({ shows, missed }, i) => ({
    shows,
    ok: missed.length === 0,
    missed: missed.map((one) => toMissed(one, placeOf([i, ...one.path]))),
  }))
  return { file, tests }
}

function toMissed(
  { path, expected, found, because }: MissedExpectation,
  { line, column }: { readonly line: number; readonly column: number },
): MissedRow {
  const [first, second, ...names] = path
  const what = [`${first}.${second}`, ...names].join(' ')
  return { line, column, what, expected: textOf(expected), found: textOf(found), because }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? 'nothing')
}

/** A clause of a configuration, and how many expected calls it held for. */
export interface ClauseRow {
  readonly file: string
  readonly line: number
  readonly column: number
  readonly clause: string
  readonly match: string
  readonly hits: number
  /** How many real calls it held for, where that was asked. */
  readonly recorded?: number
}

/** Returns the clauses of the tested configurations, with the hits of all files, in the order in which they are written. */
export function toClauseRows(
  tested: readonly { readonly of: PolicyTestFile; readonly report: PolicyTestReport }[],
  recorded?: ReadonlyMap<string, number>,
): readonly ClauseRow[] {
  const rows = new Map<string, ClauseRow>()
  for (const { of, report } of tested)
    for (const { ref, path, hits } of report.clauses) {
      const place = of.clausePlace(path)
      if (!place) continue
      const key = `${place.file} ${path}`
      const clause = clauseText(ref)
      rows.set(key, {
        ...place,
        clause,
        match: ref.match,
        hits: (rows.get(key)?.hits ?? 0) + hits,
        ...(recorded && { recorded: recorded.get(clause) ?? 0 }),
      })
    }
  return [...rows.values()].toSorted((a, b) =>
    a.file < b.file ? -1 : a.file > b.file ? 1 : a.line - b.line || a.column - b.column,
  )
}

/** Returns what a test missed, on one line: `expect.call files:write_file: expected allow, found deny`. */
export function describeMissed({ what, expected, found }: MissedRow): string {
  return `${what}: expected ${expected}, found ${found}`
}

/** Returns the results in version 14 of the Test Anything Protocol. */
export function toTap(files: readonly FileResults[]): string {
  const rows = files.flatMap(({ file, tests }) => tests.map((test) => ({ file, ...test })))
  const lines = rows.flatMap(({ file, shows, ok, missed }, i) => [
    `${ok ? 'ok' : 'not ok'} ${i + 1} - ${tapText(`${file}: ${shows}`)}`,
    ...(ok ? [] : diagnosis(file, missed)),
  ])
  return ['TAP version 14', `1..${rows.length}`, ...lines, ''].join('\n')
}

/** The block is YAML; JSON texts are YAML, too. */
function diagnosis(file: string, missed: readonly MissedRow[]): readonly string[] {
  const rows = missed.flatMap(({ line, column, because, ...one }) => [
    `  - at: ${JSON.stringify(`${file}:${line}:${column}`)}`,
    `    message: ${JSON.stringify(describeMissed({ line, column, because, ...one }))}`,
    `    because: ${JSON.stringify(because)}`,
  ])
  return ['  ---', '  missed:', ...rows.map((row) => `  ${row}`), '  ...']
}

/** `#` begins a directive, and a line break another line. */
function tapText(text: string): string {
  return text.replaceAll(/\s+/g, ' ').replaceAll('\\', '\\\\').replaceAll('#', '\\#')
}

/** Returns the results in the XML of JUnit, as CI servers read it: a suite for each file. */
export function toJunit(files: readonly FileResults[]): string {
  const suites = files.map(({ file, tests }) => {
    const failed = tests.filter(({ ok }) => !ok).length
    const cases = tests.map(({ shows, ok, missed }) => {
      const head = `    <testcase classname="${xml(file)}" name="${xml(shows)}"`
      if (ok) return `${head}/>`
      const failures = missed.map(
        (row) =>
          `      <failure message="${xml(describeMissed(row))}">${xml([`${file}:${row.line}:${row.column}`, ...row.because].join('\n'))}</failure>`,
      )
      return [`${head}>`, ...failures, '    </testcase>'].join('\n')
    })
    const head = `  <testsuite name="${xml(file)}" tests="${tests.length}" failures="${failed}">`
    return [head, ...cases, '  </testsuite>'].join('\n')
  })
  return ['<?xml version="1.0" encoding="UTF-8"?>', '<testsuites>', ...suites, '</testsuites>', ''].join('\n')
}

const ESCAPES: ReadonlyMap<string, string> = new Map([
  ['&', '&amp;'],
  ['<', '&lt;'],
  ['>', '&gt;'],
  ['"', '&quot;'],
  ['\n', '&#10;'],
  ['\t', '&#9;'],
])

/** XML 1.0 has no other control characters. */
function xml(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/[\u0000-\u0008\u000b-\u001f\ufffe\uffff]/g, '\u{fffd}')
    .replaceAll(/[&<>"\n\t]/g, (character) => ESCAPES.get(character) ?? '')
}
