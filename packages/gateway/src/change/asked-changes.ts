import type { Caller } from '@toolgate/core'
import { ConfigError } from '@toolgate/core'
import { suggestPolicy, takeSnapshot, testPolicies, whatIf } from '@toolgate/core/change'
import { exportFor } from '../api/callers.ts'
import type { CompareBody, PolicyTestsBody, SuggestBody } from '../api/wire.ts'
import { nextTurn } from '../next-turn.ts'
import { compareConfigs } from './compare-configs.ts'
import { parseSentTests } from './policy-tests.ts'
import { rulesOfChange } from './rules-of-change.ts'
import { toClauseRows, toRows } from './test-rows.ts'
import { type AskedChange, BEFORE_MS, MAX_MS, toWhatIfBody, WEEK_MS, type WhatIfDeps, whatIfText } from './what-if.ts'

/** Returns what a running gateway says of changes. */
export function askedChanges(deps: WhatIfDeps) {
  return {
    whatIf: async (asked: AskedChange) => whatIfText(deps, asked),
    compare: async (asked: ProposedRules) => compareText(deps, asked),
    test: async (asked: AskedTests) => testText(deps, asked),
    suggest: async (asked: AskedSuggestion) => suggestFromAudit(deps, asked),
  }
}

/** The rules of a text, as somebody proposes them. */
export type ProposedRules = Pick<AskedChange, 'text' | 'isPolicy' | 'signal'>

/** Returns whether a text grants no more than the configuration in force, over the catalog as it is. @throws {ConfigFileError} */
async function compareText(deps: WhatIfDeps, { signal, ...asked }: ProposedRules): Promise<CompareBody> {
  const { gate, settings, rules, redactor } = deps
  const config = await readProposed(deps, asked)
  const pace = paceOf(deps, signal)
  const compared = await compareConfigs({ ...settings, ...rules() }, config, takeSnapshot(gate.catalog), {
    onProgress: pace,
    signal,
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
  // Inputs and names may hold what was filled in.
  return redactor(config).redactValue(compared) as CompareBody
}

export interface AskedTests extends Omit<ProposedRules, 'text'> {
  /** Absent: the configuration in force is tested. */
  readonly text: string | undefined
  /** The text of a file of tests. */
  readonly tests: string
}

/** Returns what a text of tests comes to, over the catalog as it is. Runs no tool. @throws {ConfigFileError} for unknown names */
async function testText(deps: WhatIfDeps, { tests, text, isPolicy, signal }: AskedTests): Promise<PolicyTestsBody> {
  const { gate, settings, rules, redactor } = deps
  const config = text === undefined ? { ...settings, ...rules() } : await readProposed(deps, { text, isPolicy })
  const file = await parseSentTests(tests, { config: () => config, catalog: takeSnapshot(gate.catalog) })
  const report = await testPolicies({ ...file.options, onProgress: paceOf(deps, signal) }).catch((error: unknown) => {
    if (!(error instanceof TooSlow)) throw error
    throw new ConfigError('tests', 'take longer than the minute that a gateway has for them; use "toolgate test"')
  })
  const body: PolicyTestsBody = {
    files: [toRows(file, report)],
    clauses: toClauseRows([{ of: file, report }]),
    warnings: [...new Set(report.warnings.map(({ path, text: said }) => `${path}: ${said}`))],
  }
  return redactor(config).redactValue(body) as PolicyTestsBody
}

export interface AskedSuggestion {
  /** Wall-clock milliseconds. */
  readonly since: number | undefined
  readonly role: string | undefined
  readonly person: Caller
  readonly signal: AbortSignal
}

/** Returns the least that recorded calls show to be needed, and which of these calls it would refuse. */
async function suggestFromAudit(
  deps: WhatIfDeps,
  { since, role, person, signal }: AskedSuggestion,
): Promise<SuggestBody> {
  const { gate, audit, clock, settings, rules, redactor } = deps
  const config = { ...settings, ...rules() }
  const from = since ?? clock.wallMs() - WEEK_MS
  const endMs = clock.monotonicMs() + MAX_MS
  let isWhole = true
  async function* inTime() {
    let read = 0
    for await (const record of exportFor(person, audit, { since: from - BEFORE_MS })) {
      isWhole &&= clock.monotonicMs() <= endMs
      if (!isWhole) return
      if (++read % REST_EVERY === 0) await nextTurn()
      yield record
    }
  }
  const before = rulesOfChange([...gate.catalog.snapshot(), ...gate.catalog.items()], config)
  const suggestion = await suggestPolicy({ rules: before, records: inTime(), since: from, role, signal })
  const after = { ...before, policy: suggestion.policy }
  const found = await whatIf({
    before,
    after,
    records: inTime(),
    since: from,
    role,
    signal,
    hashOf: audit.hashText,
    onProgress: nextTurn,
  })
  const redact = redactor(config)
  return {
    ...(redact.redactValue(suggestion) as Omit<SuggestBody, 'whatIf'>),
    whatIf: toWhatIfBody(found, { isWhole, redactor: redact }),
  }
}

const REST_EVERY = 250

class TooSlow extends Error {}

/** Returns a function that lets calls of agents go first, and throws after a minute. */
function paceOf({ clock }: WhatIfDeps, signal: AbortSignal): () => Promise<void> {
  const endMs = clock.monotonicMs() + MAX_MS
  return async () => {
    await nextTurn()
    signal.throwIfAborted()
    if (clock.monotonicMs() > endMs) throw new TooSlow()
  }
}

async function readProposed(deps: WhatIfDeps, { text, isPolicy }: Pick<AskedChange, 'text' | 'isPolicy'>) {
  return deps.parse(isPolicy ? deps.withPolicy(text) : text)
}
