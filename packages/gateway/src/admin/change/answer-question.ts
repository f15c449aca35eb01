import { ConfigError } from '@toolgate/core'
import { suggestPolicy, testPolicies, whatIf } from '@toolgate/change'
import type { CompareBody, PolicyTestsBody, SuggestBody } from '../../model/rows.ts'
import { compareConfigs } from './compare-configs.ts'
import { parseSentTests } from './policy-tests.ts'
import type {
  QuestionAnswer,
  ChangeDeps,
  CompareQuestion,
  ThreadQuestion,
  SuggestQuestion,
  TestQuestion,
} from './questions.ts'
import { MAX_MS, recordsInTime } from './records-in-time.ts'
import { rulesOfChange } from '../../servers/catalog/rules-of-change.ts'
import { toClauseRows, toRows } from './test-rows.ts'
import { toWhatIfBody, whatIfText } from './what-if.ts'

/**
 * Answers a question about a change. It may use a processor for a minute.
 *
 * @throws {ConfigFileError} or {ConfigError} for a text that cannot be used
 */
export async function answerQuestion(deps: ChangeDeps, question: ThreadQuestion): Promise<QuestionAnswer> {
  switch (question.what) {
    case 'whatIf':
      return whatIfText(deps, question)
    case 'compare':
      return compareText(deps, question)
    case 'test':
      return testText(deps, question)
    case 'suggest':
      return suggestFromAudit(deps, question)
  }
}

/**
 * Returns whether a text grants at most the rights of the current configuration, over the current catalog. @throws
 * {ConfigFileError}
 */
async function compareText(deps: ChangeDeps, proposed: CompareQuestion): Promise<CompareBody> {
  const config = await deps.parse(proposed)
  const compared = await compareConfigs(deps.config, config, deps.catalog, {
    people: deps.people,
    onProgress: paceOf(),
  }).catch((error: unknown) => {
    if (!(error instanceof TooSlow)) throw error
    const why = 'a gateway compares for a minute at most, and "toolgate compare" goes on'
    return {
      grantsNoMore: 'unknown' as const,
      counterexamples: [],
      notCompared: [{ caller: 'anybody', tools: [], why }],
      sections: [],
    }
  })
  // Inputs and names may contain filled-in values.
  return deps.redactor(config).redactValue(compared) as CompareBody
}

/**
 * Returns the results of a text of tests, over the current catalog. Runs no tool. @throws {ConfigFileError} for unknown
 * names
 */
async function testText(deps: ChangeDeps, { tests, proposed }: TestQuestion): Promise<PolicyTestsBody> {
  const config = proposed ? await deps.parse(proposed) : deps.config
  const file = await parseSentTests(tests, { config: () => config, catalog: deps.catalog })
  const report = await testPolicies({ ...file.options, onProgress: paceOf() }).catch((error: unknown) => {
    if (!(error instanceof TooSlow)) throw error
    throw new ConfigError('tests', 'take longer than the minute that a gateway has for them; use "toolgate test"')
  })
  const body: PolicyTestsBody = {
    files: [toRows(file, report)],
    clauses: toClauseRows([{ of: file, report }]),
    warnings: [...new Set(report.warnings.map(({ path, text: said }) => `${path}: ${said}`))],
  }
  return deps.redactor(config).redactValue(body) as PolicyTestsBody
}

/** Returns the smallest policy that recorded calls need, and which of these calls it would refuse. */
async function suggestFromAudit(deps: ChangeDeps, { since, role }: SuggestQuestion): Promise<SuggestBody> {
  const { catalog, config, people, hashOf, redactor } = deps
  const records = recordsInTime(deps, since)
  const before = rulesOfChange(catalog, config)
  const suggestion = await suggestPolicy({ rules: before, people, ...records.read(), since: records.since, role })
  const after = { ...before, policy: suggestion.policy }
  const found = await whatIf({ before, after, people, ...records.read(), since: records.since, role, hashOf })
  const redact = redactor(config)
  return {
    ...(redact.redactValue(suggestion) as Omit<SuggestBody, 'whatIf'>),
    whatIf: toWhatIfBody(found, { isWhole: records.isWhole(), redactor: redact }),
  }
}

class TooSlow extends Error {}

/** Returns a function that throws after a minute. */
function paceOf(): () => undefined {
  const endMs = performance.now() + MAX_MS
  return () => {
    if (performance.now() > endMs) throw new TooSlow()
  }
}
