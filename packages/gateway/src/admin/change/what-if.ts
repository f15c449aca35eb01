import { type WhatIf, whatIf } from '@toolgate/change'
import type { Redactor } from '@toolgate/values/redact'
import type { WhatIfBody } from '../../model/rows.ts'
import type { ChangeDeps, WhatIfQuestion } from './questions.ts'
import { recordsInTime } from './records-in-time.ts'
import { rulesOfChange } from '../../servers/catalog/rules-of-change.ts'

const MAX_NAMED = 100
const MAX_CALLERS = 1000

/**
 * Returns the effects of a text's rules on callers and recorded calls. @throws {ConfigFileError} before any record is
 * read
 */
export async function whatIfText(deps: ChangeDeps, { since, ...proposed }: WhatIfQuestion): Promise<WhatIfBody> {
  const { catalog, hashOf, redactor } = deps
  const config = await deps.parse(proposed)
  const records = recordsInTime(deps, since)
  const found = await whatIf({
    before: rulesOfChange(catalog, deps.config),
    after: rulesOfChange(catalog, config),
    people: deps.people,
    ...records.read(),
    since: records.since,
    hashOf,
  })
  return toWhatIfBody(found, { isWhole: records.isWhole(), redactor: redactor(config) })
}

export function toWhatIfBody(
  { access, rows, rules, ...counts }: WhatIf,
  { isWhole, redactor }: { isWhole: boolean; redactor: Pick<Redactor, 'redactText'> },
): WhatIfBody {
  const { redactText } = redactor
  return {
    ...counts,
    isWhole,
    // Names and texts of clauses may contain filled-in values.
    rows: rows.map((row) => ({ ...row, rule: redactText(row.rule), why: redactText(row.why) })),
    rules: rules.map((rule) => ({ ...rule, rule: redactText(rule.rule) })),
    access: access.slice(0, MAX_CALLERS).map(({ caller, people, gains, loses, unknown }) => ({
      caller,
      ...(people !== undefined && { people }),
      gains: gains.slice(0, MAX_NAMED),
      loses: loses.slice(0, MAX_NAMED),
      unknown: unknown.slice(0, MAX_NAMED),
      counts: { gains: gains.length, loses: loses.length, unknown: unknown.length },
    })),
    callers: access.reduce((sum, { people = 1 }) => sum + people, 0),
  }
}
