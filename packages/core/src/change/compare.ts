import type { CallPreview } from '../call/preview.ts'
import { compareStrictness, type OutcomeWord } from '../decide/decision.ts'
import type { Gate } from '../gate/gate.ts'
import { toCallView, type View } from '../gate/view.ts'
import { type Caller, callerKey, defineCaller } from '../ports/caller.ts'
import { parseAliases } from '../tools/aliases.ts'
import { toGroupMap } from '../tools/groups.ts'
import { canonicalize } from '../util/json.ts'
import { checkShape, shapeOf } from '../util/shape.ts'
import { grantsNoMore, restrictionsOn } from './restrictions.ts'
import { nameOfCaller } from './recorded-callers.ts'
import { probeInputs } from './probe-inputs.ts'
import { createStage } from './stage.ts'
import { createTrial } from './trial.ts'
import type { RulesOfChange } from './what-if.ts'

export interface ComparePoliciesOptions {
  readonly before: RulesOfChange
  readonly after: RulesOfChange
}

/** A call that comes to less after than before. */
export interface MoreGranted {
  readonly caller: string
  readonly tool: string
  readonly before: OutcomeWord
  readonly after: OutcomeWord
  /** The input of the call. Absent: any. */
  readonly input?: unknown
  /** Both ask a person, and now of somebody who could not have approved before. */
  readonly weakerApproval?: true
}

/** What cannot be compared: conditions over inputs and runs that differ. */
export interface NotCompared {
  readonly caller: string
  readonly tools: readonly string[]
}

/**
 * Whether one policy grants no more than another: `no` has a counterexample. Limits, labels and apps are not compared.
 */
export interface PolicyComparison {
  readonly grantsNoMore: 'yes' | 'no' | 'unknown'
  readonly counterexamples: readonly MoreGranted[]
  readonly notCompared: readonly NotCompared[]
}

const OPTIONS = shapeOf<ComparePoliciesOptions>({ before: true, after: true })
const MAX_COUNTEREXAMPLES = 100

/**
 * Returns whether the policies after grant no more than those before: for every caller that either names, for every tool,
 * resource and prompt of either catalog, for every input and in every run. Exact for what is known when tools are listed. Where
 * conditions over inputs or runs differ, or what they read of tools, a few inputs are tried for a counterexample; without one the
 * answer is `unknown`, as it is without callers.
 *
 * @throws {ConfigError} for rules that no gate takes
 * @example
 * const { grantsNoMore } = await comparePolicies({ before: { policy: old, catalog, callers }, after: { policy, catalog, callers } })
 */
export async function comparePolicies(options: ComparePoliciesOptions): Promise<PolicyComparison> {
  checkShape('comparePolicies', options, OPTIONS)
  const { before, after } = options
  const gates = { before: openTrial(before), after: openTrial(after) }
  const grounds = { before: groundOfRuns(before), after: groundOfRuns(after) }
  const ids = [
    ...new Set(
      [gates.before, gates.after].flatMap(({ catalog }) => [...catalog.snapshot().ids, ...catalog.items().ids]),
    ),
  ]
  const callers = callersOf(options)
  const counterexamples: MoreGranted[] = []
  const notCompared: NotCompared[] = []
  try {
    for (const caller of callers) {
      const views = { before: await gates.before.view(caller), after: await gates.after.view(caller) }
      const unknown: string[] = []
      for (const id of ids) {
        const found = await compareOne(views, id, grounds)
        if (found === 'unknown') unknown.push(id)
        else if (found !== 'yes' && counterexamples.length < MAX_COUNTEREXAMPLES)
          counterexamples.push({ caller: nameOfCaller(caller), tool: id, ...found })
      }
      if (unknown.length > 0) notCompared.push({ caller: nameOfCaller(caller), tools: unknown })
    }
  } finally {
    await Promise.all([gates.before.close(), gates.after.close()])
  }
  if (counterexamples.length > 0) return { grantsNoMore: 'no', counterexamples, notCompared }
  const isCompared = callers.length > 0 && notCompared.length === 0
  return { grantsNoMore: isCompared ? 'yes' : 'unknown', counterexamples, notCompared }
}

function openTrial({ catalog, callers: _, ...rules }: RulesOfChange): Gate {
  return createTrial(catalog, rules)
}

function callersOf({ before, after }: ComparePoliciesOptions): readonly Caller[] {
  const all = [...(before.callers ?? []), ...(after.callers ?? [])].map(defineCaller)
  return [...new Map(all.map((caller) => [callerKey(caller), caller])).values()]
}

/** Returns what conditions about runs read beside the run: which calls a selector means, and what gives which labels. */
function groundOfRuns({ catalog, groups, aliases, labels, history }: RulesOfChange): string {
  const items = createStage(catalog).items.map(({ id, tags, category, requiredScopes, trusted, ...item }) => ({
    id,
    tags,
    category,
    requiredScopes,
    trusted,
    labels: item.labels,
    addressees: item.addressees,
    groups: item.groups,
  }))
  const members = [...toGroupMap(groups ?? {})].map(([name, { tools }]) => ({ name, tools }))
  return canonicalize(
    JSON.parse(JSON.stringify({ items, members, aliases: [...parseAliases(aliases)], labels, history })),
  )
}

interface Views {
  readonly before: View
  readonly after: View
}

async function compareOne(
  views: Views,
  id: string,
  grounds: { readonly before: string; readonly after: string },
): Promise<'yes' | 'unknown' | Omit<MoreGranted, 'caller' | 'tool'>> {
  const before = restrictionsOn(toCallView(views.before), id, grounds.before)
  const after = restrictionsOn(toCallView(views.after), id, grounds.after)
  const answer = grantsNoMore(before, after)
  if (answer === 'yes') return 'yes'
  const words = { before: before.listed.outcome, after: after.listed.outcome }
  if (answer === 'approval') return { ...words, weakerApproval: true }
  if (answer === 'no') return words
  const tool = views.after.get(id) ?? views.before.get(id)
  for (const input of tool ? probeInputs(tool, [before, after]) : []) {
    const had = await wordOfCall(views.before, id, input)
    const has = await wordOfCall(views.after, id, input)
    if (compareStrictness(has, had) > 0) return { before: had, after: has, input }
  }
  return 'unknown'
}

async function wordOfCall(view: View, tool: string, input: unknown): Promise<OutcomeWord> {
  const preview: CallPreview = await view.preview({ tool, input, run: { id: 'compare' } })
  return preview.status === 'refused' ? preview.decision.outcome : preview.status
}
