import {
  type Caller,
  type CallOutcome,
  createGate,
  defineCaller,
  type FunctionPolicy,
  type Gate,
  type GateOptions,
  type LintWarning,
  type OutcomeWord,
  type Reason,
  type View,
} from '@toolgate/core'
import type { ClauseCoverage } from '@toolgate/core/decide'
import { wordOf } from '@toolgate/core/call'
import { memoryCounters } from '@toolgate/core/stores'
import type { AuditSink, RunOfCall } from '@toolgate/core/audit'
import type { Group } from '@toolgate/core/groups'
import type { GroupSelectors } from '@toolgate/core/policy'
import { parseAgo, type PolicyTest, type Unlocking } from './policy-test.ts'
import type { Stage } from './stage.ts'
import { statedAvailability, statedHistories, type StatedLimits } from './stated.ts'

/** The rules under test: the options of a gate that are data. */
export type TestedRules = Pick<
  GateOptions,
  'policy' | 'groups' | 'apps' | 'aliases' | 'limits' | 'labels' | 'history' | 'stepUp'
>

/** The data that all tests of a set of rules share. */
export interface Bench {
  readonly rules: TestedRules
  readonly groups: ReadonlyMap<string, Group>
  readonly selectors: GroupSelectors
  readonly stage: Stage
  readonly limits: StatedLimits
  readonly callers: ReadonlyMap<string, Caller>
  readonly onWarning: (warning: LintWarning) => void
  /** Receives the clause counts when a situation ends. */
  readonly onCoverage: (clauses: readonly ClauseCoverage[]) => void
}

/** The part of a test that sets up the situation. */
type TestSituation = Omit<PolicyTest, 'shows' | 'expect'>

/** An expectation that was not met. */
export interface MissedExpectation {
  /** The path within the test, such as `['expect', 'call', 'files:write_file']`. */
  readonly path: readonly (string | number)[]
  readonly expected: unknown
  readonly found: unknown
  /** The reasons of the decision, the deciding one first. */
  readonly because: readonly string[]
}

/** A gate in a situation, ready for calls. */
export interface Scene {
  readonly gate: Gate
  readonly view: View
  /** Earlier calls that were not possible. */
  readonly missed: readonly MissedExpectation[]
  /** Makes a call after the stated history, with the stated limits. */
  call(tool: string): Promise<{ readonly outcome: CallOutcome; readonly ran: boolean }>
}

const START_MS = Date.parse('2026-01-01T00:00:00Z')
const RUN = 'test'
const NO_AUDIT: AuditSink = { write: () => {}, flush: async () => {}, close: async () => {} }

/** Opens a situation, runs the work and closes it. Situations share no state that a call could change. */
export async function withScene<T>(
  bench: Bench,
  situation: TestSituation,
  work: (scene: Scene) => T | Promise<T>,
): Promise<T> {
  const { stage, limits, callers } = bench
  const { caller: who = {}, history = {}, app, visibility, activeTools, input } = situation
  const caller = defineCaller(typeof who === 'string' ? (callers.get(who) ?? {}) : who)
  const atMs = situation.at === undefined ? START_MS : Date.parse(situation.at)
  let nowMs = atMs - Math.max(0, ...(history.calls ?? []).map(({ ago }) => parseAgo(ago) ?? 0))
  const clock = { monotonicMs: () => nowMs, wallMs: () => nowMs }
  const counters = memoryCounters({ clock })
  const gate = openGate(bench, situation, { clock, counters })
  const { run, missed } = await makeEarlierCalls(gate, { stage, caller, history, setTime: (ms) => (nowMs = atMs - ms) })
  nowMs = atMs
  try {
    unlock(gate, caller, situation.unlocked ?? [])
    const view = await gate.view(caller, { app, visibility, activeTools })
    const used = new Map(Object.entries(situation.used ?? {}))
    return await work({
      gate,
      view,
      missed,
      async call(id) {
        const tool = view.get(id) ?? gate.catalog.get(id)
        if (tool) limits.use(counters, used, tool, caller)
        let ran = false
        stage.run = () => {
          ran = true
          return null
        }
        const given = input ?? (tool?.kind === 'resource' ? { uri: tool.uri } : {})
        return { outcome: await view.call({ tool: id, input: given, ...(run && { run }) }), ran }
      },
    })
  } finally {
    bench.onCoverage(gate.coverage())
    await gate.close()
  }
}

/** Opens the gate of a situation, over the items of the stage. */
export function openGate(
  { rules, groups, stage, onWarning }: Pick<Bench, 'rules' | 'groups' | 'stage' | 'onWarning'>,
  { availability = {}, history = {} }: TestSituation,
  { clock, counters }: Pick<GateOptions, 'counters'> & { readonly clock: NonNullable<GateOptions['clock']> },
): Gate {
  return createGate({
    ...rules,
    groups,
    sources: stage.sources,
    availability: statedAvailability(groups, availability, clock),
    history: { ...rules.history, store: statedHistories(history.labels ?? []) },
    ...(counters && { counters }),
    audit: NO_AUDIT,
    clock,
    pins: 'off',
    definitions: 'off',
    onWarning,
  })
}

/** The clock of a gate that is only used for lists. */
export const STILL = { clock: { monotonicMs: () => START_MS, wallMs: () => START_MS } }

/** Opens locked groups for the session of a caller. */
export function unlock({ locks }: Gate, caller: Caller, unlocked: readonly Unlocking[]): void {
  for (const by of unlocked) {
    if ('request' in by) locks.request(caller, by.request)
    else if ('event' in by) locks.event(caller, by.event)
    else locks.found(caller, by.found)
  }
}

/** Stated calls have happened, even if the policy under test would deny them. */
const ANYTHING: FunctionPolicy = { kinds: ['resource', 'template', 'prompt'], decide: () => 'allow' }

interface Earlier {
  readonly stage: Stage
  readonly caller: Caller
  readonly history: NonNullable<TestSituation['history']>
  readonly setTime: (msAgo: number) => void
}

/** Makes the earlier calls, with a policy that allows everything, and returns their run. */
async function makeEarlierCalls(
  gate: Gate,
  { stage, caller, history, setTime }: Earlier,
): Promise<{ run: RunOfCall | undefined; missed: readonly MissedExpectation[] }> {
  const { calls = [], said, lost = false, run: hasRun = true } = history
  const run: RunOfCall | undefined = hasRun
    ? { id: RUN, ...(said !== undefined && { userWords: said }), ...(lost && { resumed: true }) }
    : undefined
  if (calls.length === 0) return { run, missed: [] }
  const view = await gate.fork({ policy: ANYTHING, inherit: false }).view(caller)
  const missed: MissedExpectation[] = []
  for (const [i, { tool, input = {}, output = null, failed = false, ago }] of calls.entries()) {
    setTime(parseAgo(ago) ?? 0)
    stage.run = () => {
      if (failed) throw new Error('it failed')
      return output
    }
    const outcome = await view.call({ tool, input, ...(run && { run }) })
    if (outcome.status !== 'done' && outcome.status !== 'failed')
      missed.push({ path: ['history', 'calls', i], expected: 'a call that happened', ...foundOf(outcome) })
  }
  return { run, missed }
}

/** Returns the outcome of a call, and its reasons. */
export function foundOf(outcome: CallOutcome): Pick<MissedExpectation, 'because'> & { found: OutcomeWord } {
  return { found: wordOf(outcome), because: reasonsOf(outcome).map(({ code, text }) => `${code}: ${text}`) }
}

export function reasonsOf(outcome: CallOutcome): readonly Reason[] {
  return 'decision' in outcome ? outcome.decision.reasons : []
}
