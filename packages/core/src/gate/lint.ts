import { lintLimits } from '../call/limit-lint.ts'
import { type LimitInput, parseLimits } from '../call/limits.ts'
import { type CapInput, parseCaps } from '../call/slots.ts'
import { checkShape, ConfigError, isErrorOf, shapeOf } from '@toolgate/values'
import { type LabelsInput, parseLabels } from '../history/labels.ts'
import { lintAll, type LintWarning } from '../policy/lint.ts'
import { type FieldUse, fieldUsesOf, fieldUsesOfLimits, lintFields } from '../policy/field-lint.ts'
import { lintLookAlikes } from '../policy/look-alikes.ts'
import { lintPatterns } from '../policy/pattern-lint.ts'
import { lintRuns } from '../policy/run-lint.ts'
import { CLAUSE_KINDS, type ParsedPolicy, parsePolicyAt } from '../policy/parse.ts'
import { type FunctionPolicy, listPolicies, type Policies, type Policy } from '../policy/policy.ts'
import { writtenIn } from '../policy/written-in.ts'
import type { WrittenSelector } from '../policy/unknown-names.ts'
import { type Aliases, type AliasesInput, parseAliases } from '../tools/aliases.ts'
import { type Group, toGroupMap } from '../tools/groups.ts'
import { type GroupSelectors, parseSelector, type Selector, splitEntries } from '../tools/selector.ts'
import type { Tool } from '../tools/tool.ts'
import { createToolset } from '../tools/toolset.ts'

/** The configuration as written, not yet checked. */
export interface LintOptions {
  readonly tools: Iterable<Tool>
  readonly groups?: Readonly<Record<string, Group>> | ReadonlyMap<string, Group>
  readonly policy?: Policies
  readonly limits?: LimitInput
  readonly concurrency?: CapInput
  readonly aliases?: AliasesInput
  readonly labels?: LabelsInput
}

const OPTIONS = shapeOf<LintOptions>({
  tools: true,
  groups: true,
  policy: true,
  limits: true,
  concurrency: true,
  aliases: true,
  labels: true,
})

/**
 * Returns all errors and probable mistakes of a configuration at once. `createGate` stops at the first error.
 *
 * | code | means |
 * |---|---|
 * | `selector_unmatched` | a clause, a limit, a cap, or a member of a group matches no tool |
 * | `tool_unreachable` | no caller could ever see these tools |
 * | `clause_covered` | another clause makes this one redundant: no decision changes without it |
 * | `clause_never` | the condition of the clause can never hold |
 * | `kind_not_allowed` | a policy allows none of the resources or prompts of a server |
 * | `limit_covered` | a limit is never reached, because a stricter one also counts its calls |
 * | `name_confusable` | names look alike, mix scripts, or differ only in letter case, `-` and `_` |
 * | `alias_taken` | an alias is also the id of a tool |
 * | `group_cycle`, `group_unknown` | groups depend on themselves or on unknown groups |
 * | any other | what `createGate` would throw |
 *
 * @example
 * for (const { path, text } of lint({ tools, groups, policy })) console.warn(`${path}: ${text}`)
 */
export function lint(options: LintOptions): readonly LintWarning[] {
  checkShape('lint', options, OPTIONS)
  const { tools, groups = {}, policy, limits, concurrency, aliases: names, labels: given } = options
  const byName = toGroupMap(groups)
  const written = listPolicies(policy)
  const aliases = readAliases(names)
  const known = readableSelectors(byName, aliases.read)
  const strays = findStrays(written, byName)
  const withStrays = Object.assign(new Map([...known, ...strays.map(({ group }) => [group, []] as const)]), {
    aliases: aliases.read,
  })
  const policies = readPolicies(written, withStrays)
  const rates = readEntries('limits', limits, (one) => parseLimits([one], known))
  const caps = readEntries('concurrency', concurrency, (one) => parseCaps([one], known))
  const all = [...tools]
  const items = createToolset(all.filter(({ kind }) => kind !== 'tool'))
  const snapshot = createToolset(all.filter(({ kind }) => kind === 'tool'))
  const labels = readLabels(given, known)
  const found = lintAll(policies.parsed, known, snapshot, {
    written: [...rates.written, ...caps.written, ...labels.read.written],
    others: { items, sources: [] },
  })
  // An unknown group also matches no tool. Report it once.
  const rest = found.filter(
    ({ path, text }) => !strays.some((stray) => stray.path === path && text.startsWith(stray.text)),
  )
  return [
    ...lintGroups(byName),
    ...strays.map((stray) => toWarning(stray, byName)),
    ...aliases.faults,
    ...policies.faults,
    ...rates.faults,
    ...caps.faults,
    ...labels.faults,
    ...rest,
    ...lintFields([...fieldUsesOf(policies.parsed), ...rates.uses], snapshot),
    ...lintPatterns(policies.parsed),
    ...lintLookAlikes(policies.parsed, snapshot, [...rates.written, ...caps.written, ...labels.read.written]),
    ...lintLimits(rates.parsed),
    ...lintRuns(policies.parsed, snapshot, labels.read),
  ]
}

function readLabels(given: LabelsInput | undefined, groups: GroupSelectors) {
  try {
    return { read: parseLabels(given, groups), faults: [] }
  } catch (error) {
    if (!isErrorOf(error, ConfigError)) throw error
    const fault: LintWarning = { code: error.code, path: error.path, text: error.problem }
    return { read: parseLabels(undefined, groups), faults: [fault] }
  }
}

interface ReadEntries<Parsed> {
  readonly written: readonly WrittenSelector[]
  readonly parsed: readonly Parsed[]
  readonly uses: readonly FieldUse[]
  readonly faults: readonly LintWarning[]
}

/** Reads the entries of a list one by one, so that an invalid entry does not hide the others. */
function readEntries<Entry, Parsed extends Omit<Parameters<typeof fieldUsesOfLimits>[0][number], 'path'>>(
  root: string,
  list: string | readonly (string | Entry)[] = [],
  parse: (entry: string | Entry) => readonly Parsed[],
): ReadEntries<Parsed & { readonly path: string }> {
  const path = writtenIn(list) ?? root
  const written: WrittenSelector[] = []
  const all: (Parsed & { readonly path: string })[] = []
  const uses: FieldUse[] = []
  const faults: LintWarning[] = []
  const entries = typeof list === 'string' ? splitEntries(list) : list
  if (!Array.isArray(entries))
    return { written, parsed: all, uses, faults: [{ code: 'config_invalid', path, text: 'must be a list' }] }
  for (const [i, entry] of (entries as readonly (string | Entry)[]).entries()) {
    try {
      const parsed = parse(entry).map((one) => ({ ...one, path: `${path}[${i}]` }))
      all.push(...parsed)
      for (const { selector } of parsed) written.push({ path: `${path}[${i}]`, selector })
      uses.push(...fieldUsesOfLimits(parsed))
    } catch (error) {
      if (!isErrorOf(error, ConfigError)) throw error
      faults.push({ code: error.code, path: error.path.replace(`${root}[0]`, `${path}[${i}]`), text: error.problem })
    }
  }
  return { written, parsed: all, uses, faults }
}

/** A `group:` selector in a policy that refers to an unknown group. */
interface Stray {
  readonly group: string
  readonly path: string
  readonly text: string
}

function findStrays(
  policies: readonly (Policy | FunctionPolicy)[],
  groups: ReadonlyMap<string, Group>,
): readonly Stray[] {
  return policies.flatMap((policy, p) =>
    CLAUSE_KINDS.flatMap((kind) => {
      const clauses: unknown = (policy as Partial<Record<string, unknown>> | null)?.[kind]
      return (Array.isArray(clauses) ? clauses : []).flatMap((clause: unknown, i) =>
        groupsIn(clause)
          .filter((group) => !groups.has(group))
          .map((group) => ({ group, path: `policy[${p}].${kind}[${i}]`, text: `"${GROUP}${group}"` })),
      )
    }),
  )
}

function toWarning({ path, text }: Stray, groups: ReadonlyMap<string, Group>): LintWarning {
  const names = [...groups.keys()].join(', ') || '(none)'
  return { code: 'group_unknown', path, text: `${text} names no group; the groups are ${names}` }
}

const GROUP = 'group:'

function groupsIn(clause: unknown): readonly string[] {
  const match: unknown = typeof clause === 'string' ? clause : (clause as { match?: unknown } | null)?.match
  return [match]
    .flat()
    .filter((text) => typeof text === 'string' && text.startsWith(GROUP))
    .map((text) => (text as string).slice(GROUP.length))
    .filter((group) => group !== '' && !/[\s:]/.test(group))
}

/** Returns the valid selectors of each group. */
function readableSelectors(groups: ReadonlyMap<string, Group>, aliases: Aliases): GroupSelectors {
  const noGroups: GroupSelectors = Object.assign(new Map(), { aliases })
  const selectors = [...groups].map(([name, group]) => {
    const members: readonly unknown[] = Array.isArray(group?.tools) ? group.tools : []
    return [name, members.flatMap((text) => readable(text, noGroups))] as const
  })
  return Object.assign(new Map(selectors), { aliases })
}

function readable(text: unknown, noGroups: GroupSelectors): readonly Selector[] {
  try {
    return [parseSelector(text, noGroups, 'tools')]
  } catch {
    return []
  }
}

/** Skips invalid aliases. */
function readAliases(written: AliasesInput | undefined): {
  readonly read: Aliases
  readonly faults: readonly LintWarning[]
} {
  try {
    return { read: parseAliases(written), faults: [] }
  } catch (error) {
    if (!isErrorOf(error, ConfigError)) throw error
    return { read: new Map(), faults: [{ code: error.code, path: error.path, text: error.problem }] }
  }
}

const UNREADABLE: ParsedPolicy = {
  name: '',
  path: '',
  allow: undefined,
  deny: [],
  ask: [],
  requireTags: [],
  decide: undefined,
  kinds: [],
  isShadow: false,
}

/** An invalid policy keeps its position, so that the paths of the others are right. */
function readPolicies(
  written: readonly (Policy | FunctionPolicy)[],
  groups: GroupSelectors,
): { readonly parsed: readonly ParsedPolicy[]; readonly faults: readonly LintWarning[] } {
  const faults: LintWarning[] = []
  const parsed = written.map((policy, i) => {
    try {
      return parsePolicyAt(policy, groups, i)
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      faults.push({ code: error.code, path: error.path, text: error.problem })
      return UNREADABLE
    }
  })
  return { parsed, faults }
}

/** A fault of a group. A gate refuses the first one. */
interface GroupProblem {
  readonly code: 'group_cycle' | 'group_unknown' | 'selector_invalid' | 'config_invalid'
  readonly path: string
  readonly text: string
}

/** Returns all faults of groups: unknown groups, each cycle once, invalid selectors. */
function lintGroups(groups: ReadonlyMap<string, Group>): readonly GroupProblem[] {
  return [
    ...[...groups].flatMap(([name, group]) => [
      ...memberProblems(name, group),
      ...unknownProblems(name, group, groups),
    ]),
    ...findCycles(groups).map((cycle): GroupProblem => ({
      code: 'group_cycle',
      path: `groups.${cycle[0]}.dependsOn`,
      text: `a cycle: ${cycle.join(' → ')}`,
    })),
  ]
}

function memberProblems(name: string, group: Group): readonly GroupProblem[] {
  const path = `groups.${name}.tools`
  if (!Array.isArray(group?.tools)) return [{ code: 'config_invalid', path, text: 'must be a list of selectors' }]
  return group.tools.flatMap((text: unknown, i): GroupProblem[] => {
    try {
      parseSelector(text, undefined, 'tools')
      return []
    } catch (error) {
      return [{ code: 'selector_invalid', path: `${path}[${i}]`, text: (error as ConfigError).message }]
    }
  })
}

function unknownProblems(name: string, group: Group, groups: ReadonlyMap<string, Group>): readonly GroupProblem[] {
  return dependenciesOf(group).flatMap((below, i): GroupProblem[] =>
    groups.has(below)
      ? []
      : [
          {
            code: 'group_unknown',
            path: `groups.${name}.dependsOn[${i}]`,
            text: `no group is named "${below}"; the groups are ${[...groups.keys()].join(', ')}`,
          },
        ],
  )
}

/** Returns each cycle once, from the name that sorts first back to it. */
function findCycles(groups: ReadonlyMap<string, Group>): readonly (readonly string[])[] {
  const cycles = new Map<string, readonly string[]>()
  const done = new Set<string>()
  const visit = (name: string, trail: readonly string[]) => {
    const from = trail.indexOf(name)
    if (from !== -1) {
      const cycle = fromFirst(trail.slice(from))
      cycles.set(JSON.stringify(cycle), cycle)
      return
    }
    if (done.has(name)) return
    for (const below of dependenciesOf(groups.get(name))) visit(below, [...trail, name])
    done.add(name)
  }
  for (const name of groups.keys()) visit(name, [])
  return [...cycles.values()]
}

function fromFirst(ring: readonly string[]): readonly string[] {
  const first = ring.indexOf(ring.toSorted()[0] as string)
  return [...ring.slice(first), ...ring.slice(0, first), ring[first] as string]
}

function dependenciesOf(group: Group | undefined): readonly string[] {
  return Array.isArray(group?.dependsOn) ? group.dependsOn : []
}
