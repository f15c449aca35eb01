import type { FileResults, MissedRow, TestedClauseRow } from '../../model/test-rows.ts'
import type { MissedExpectation, PolicyTestReport, TestedClause } from '@toolgate/change'
import { clauseText } from '@toolgate/core/policy'
import { toJsonText } from '@toolgate/values/json'
import type { PolicyTestFile } from './policy-tests.ts'

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
  return typeof value === 'string' ? value : (toJsonText(value) ?? 'nothing')
}

/** Returns the clauses of the tested configurations in their written order, with the hits from all files. */
export function toClauseRows(
  tested: readonly { readonly of: PolicyTestFile; readonly report: PolicyTestReport }[],
  recorded?: (clause: Pick<TestedClause, 'id' | 'ref'>) => number,
): readonly TestedClauseRow[] {
  const rows = new Map<string, TestedClauseRow>()
  for (const { of, report } of tested)
    for (const { id, ref, path, hits } of report.clauses) {
      const place = of.clausePlace(path)
      if (!place) continue
      const key = `${place.file} ${path}`
      const clause = clauseText(ref)
      rows.set(key, {
        ...place,
        clause,
        match: ref.match,
        hits: (rows.get(key)?.hits ?? 0) + hits,
        ...(recorded && { recorded: recorded({ id, ref }) }),
      })
    }
  return [...rows.values()].toSorted((a, b) =>
    a.file < b.file ? -1 : a.file > b.file ? 1 : a.line - b.line || a.column - b.column,
  )
}
