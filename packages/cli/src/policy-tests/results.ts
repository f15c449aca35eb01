import type { FileResults, MissedRow } from '@toolgate/gateway'

/** Returns a failed expectation on one line: `expect.call files:write_file: expected allow, found deny`. */
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

/** Returns the YAML block of a failure. JSON texts are valid YAML. */
function diagnosis(file: string, missed: readonly MissedRow[]): readonly string[] {
  const rows = missed.flatMap(({ line, column, because, ...one }) => [
    `  - at: ${JSON.stringify(`${file}:${line}:${column}`)}`,
    `    message: ${JSON.stringify(describeMissed({ line, column, because, ...one }))}`,
    `    because: ${JSON.stringify(because)}`,
  ])
  return ['  ---', '  missed:', ...rows.map((row) => `  ${row}`), '  ...']
}

/** Escapes a text. In TAP, `#` begins a directive, and a line break begins a new line. */
function tapText(text: string): string {
  return text.replaceAll(/\s+/g, ' ').replaceAll('\\', '\\\\').replaceAll('#', '\\#')
}

/** Returns the results as JUnit XML for CI servers, with a suite for each file. */
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

/** Escapes a text. XML 1.0 forbids other control characters, so they are replaced. */
function xml(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/[\u0000-\u0008\u000b-\u001f\ufffe\uffff]/g, '\u{fffd}')
    .replaceAll(/[&<>"\n\t]/g, (character) => ESCAPES.get(character) ?? '')
}
