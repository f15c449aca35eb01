import { type Caller, defineCaller } from '@toolgate/core'
import { callerKey } from '@toolgate/core/internal'
import { canonicalize, readOwnJson } from '@toolgate/values/json'
import { checkShape, shapeOf } from '@toolgate/values'
import { parseAliases, toGroupMap } from '@toolgate/core/policy'
import type { Group } from '@toolgate/core/groups'
import { type ComparedSide, Comparison, type MoreGranted, type NotCompared } from './comparison.ts'
import { withoutFunctions } from './plain-policies.ts'
import { isSame } from './same-rules.ts'
import { createStage } from './stage.ts'
import { ANYBODY, checkOthers, type OtherCallers } from './supposed-callers.ts'
import { createTrial } from './trial.ts'
import { compareUnlisted } from './unlisted-resources.ts'
import type { RulesOfChange } from './what-if.ts'

export interface ComparePoliciesOptions {
  readonly before: RulesOfChange
  readonly after: RulesOfChange
  /** The kinds of callers that the comparison covers in addition to `callers`. Default: all callers. `[]` adds none. */
  readonly others?: readonly OtherCallers[] | undefined
  /** Called from time to time. A returned promise is awaited. */
  readonly onProgress?: (() => Promise<void> | undefined) | undefined
  readonly signal?: AbortSignal | undefined
}

/** Whether one policy grants no more than another. For `no`, there is a counterexample. */
export interface PolicyComparison {
  readonly grantsNoMore: 'yes' | 'no' | 'unknown'
  readonly counterexamples: readonly MoreGranted[]
  readonly notCompared: readonly NotCompared[]
}

const OPTIONS = shapeOf<ComparePoliciesOptions>({
  before: true,
  after: true,
  others: true,
  onProgress: true,
  signal: true,
})

/**
 * Returns whether the new policies grant no more than the old ones: for every caller, for every tool, resource and prompt
 * of either catalog, for every input and in every run. Checks callers of every kind that conditions can tell apart by
 * roles, scopes, names and attributes. If other conditions differ, some inputs and callers are tried as a counterexample;
 * if none is found, the answer is `unknown`. It is also `unknown` if limits, apps, groups that hold tools back or the tools
 * that these match differ, and if rules about resources differ, because a client may read unlisted ones.
 *
 * @throws {ConfigError} for invalid rules
 * @example
 * const { grantsNoMore } = await comparePolicies({ before: { policy: old, catalog }, after: { policy, catalog } })
 */
export async function comparePolicies(options: ComparePoliciesOptions): Promise<PolicyComparison> {
  checkShape('comparePolicies', options, OPTIONS)
  const { before, after, others = [ANYBODY] } = options
  for (const [i, one] of others.entries()) checkOthers(`comparePolicies: others[${i}]`, one)
  const sides = { before: openSide(before), after: openSide(after) }
  const comparison = new Comparison(sides, options)
  const { counterexamples, notCompared } = comparison
  try {
    const unlisted = compareUnlisted(
      { rules: before, ground: sides.before.ground },
      { rules: after, ground: sides.after.ground },
      comparison.items,
    )
    const open = await comparison.findOpen(unlisted.samples)
    const callers = callersOf(options)
    await comparison.askKnown(open, callers)
    for (const one of others) await comparison.askOthers(open, one)
    if (open.length > 0 && callers.length + others.length === 0)
      notCompared.push({ caller: 'anybody', tools: open, why: 'no caller is known' })
    if (!unlisted.isProven) notCompared.push({ caller: 'anybody', tools: [], why: UNLISTED })
  } finally {
    await Promise.all([sides.before, sides.after].flatMap(({ gate, plain }) => [gate.close(), plain.close()]))
  }
  const isSameGround = sides.before.ground === sides.after.ground
  for (const why of differencesOfForm(options, isSameGround)) notCompared.push({ caller: 'anybody', tools: [], why })
  const isYes = counterexamples.length === 0 && notCompared.length === 0
  return { grantsNoMore: counterexamples.length > 0 ? 'no' : isYes ? 'yes' : 'unknown', counterexamples, notCompared }
}

const UNLISTED = 'rules about resources differ, and a client can read a URI that no server lists'

/** Returns the parts that are compared only as text, and so may grant more. */
function differencesOfForm({ before, after }: ComparePoliciesOptions, isSameGround: boolean): readonly string[] {
  const sections = (['limits', 'concurrency', 'apps'] as const).flatMap((section) => {
    if (!isSame(before[section], after[section])) return [`${section} differ, and are not compared`]
    const isEmpty = Object.keys(before[section] ?? {}).length === 0
    return isEmpty || isSameGround ? [] : [`the tools that ${section} name may differ, and are not compared`]
  })
  const [had, has] = [before, after].map(({ groups = {} }) => toGroupMap(groups))
  const isKept = [...(had ?? [])].every(([name, group]) => !holdsBack(group) || isSameIn(has, name, group))
  const isLoaded = [...(has ?? [])].every(([name, group]) => !group.load || isSameIn(had, name, group))
  const holds = [...(had?.values() ?? [])].some(holdsBack)
  const isSameHold = isKept && isLoaded && (!holds || isSameGround)
  return isSameHold ? sections : [...sections, 'groups that hold tools back or load them differ, and are not compared']
}

function holdsBack({ unlock, visibility, availableWhen = [], dependsOn = [], load }: Group): boolean {
  return (
    unlock !== undefined ||
    visibility === 'conditional' ||
    availableWhen.length + dependsOn.length > 0 ||
    load !== undefined
  )
}

function isSameIn(groups: ReadonlyMap<string, Group> | undefined, name: string, group: Group): boolean {
  return isSame(groups?.get(name), group)
}

function openSide(rules: RulesOfChange): ComparedSide {
  const { catalog, callers: _, concurrency: __, ...own } = rules
  return {
    gate: createTrial(catalog, own),
    plain: createTrial(catalog, { ...own, policy: withoutFunctions(own.policy) }),
    ground: groundOfRuns(rules),
    stepUp: own.stepUp ?? [],
  }
}

function callersOf({ before, after }: ComparePoliciesOptions): readonly Caller[] {
  const all = [...(before.callers ?? []), ...(after.callers ?? [])].map(defineCaller)
  return [...new Map(all.map((caller) => [callerKey(caller), caller])).values()]
}

/** Returns the other inputs of conditions about runs: the tools that selectors match, and the sources of labels. */
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
    annotations: item.annotations,
    hintsTrusted: item.hintsTrusted,
  }))
  const members = [...toGroupMap(groups ?? {})].map(([name, { tools }]) => ({ name, tools }))
  return canonicalize(
    readOwnJson(JSON.stringify({ items, members, aliases: [...parseAliases(aliases)], labels, history })),
  )
}
