import type { FaultCode } from '@toolgate/values'
import { findNearNames, findTaken, selectorsOfAliases } from '../tools/aliases.ts'
import type { Source } from '../tools/catalog.ts'
import { findConfusions } from '../tools/confusables.ts'
import { schemaWarningsOf } from '../tools/schema-warnings.ts'
import { type GroupSelectors, matchesSelector } from '../tools/selector.ts'
import type { Tool } from '../tools/tool.ts'
import type { Toolset } from '../tools/toolset.ts'
import type { ParsedPolicy, ParsedClause } from './parse.ts'
import { findIdleClauses, type IdleClause } from './idle-clauses.ts'
import { partsOf } from './shadow.ts'
import {
  findUnknown,
  mayStillCome,
  type OtherItems,
  selectorsOfPolicies,
  type WrittenSelector,
} from './unknown-names.ts'

/** A probable mistake that is allowed. `lint` also returns problems that a gate would refuse. */
export interface LintWarning {
  readonly code: LintCode
  /** The path of the setting, such as `policy[0].deny[1]`. */
  readonly path: string
  readonly text: string
  /** The tools that it concerns, if any. */
  readonly tools?: readonly string[]
}

type LintCode =
  | 'selector_unmatched'
  | 'tool_unreachable'
  | 'kind_not_allowed'
  | IdleClause['code']
  | 'name_confusable'
  | 'limit_covered'
  | 'schema_skipped'
  | 'alias_taken'
  | 'group_cycle'
  | 'group_unknown'
  | 'label_unknown'
  | 'field_unknown'
  | 'field_type'
  | 'pattern_evadable'
  | 'prerequisite_untrusted'
  | 'addressees_missing'
  | 'memory_trusted'
  | FaultCode

interface LintMore {
  /** Selectors outside policies and groups. */
  readonly written?: readonly WrittenSelector[]
  /** Sources whose tools are not known yet. Names that they may still list cause no warning. */
  readonly unlisted?: readonly Source[]
  /** The resources, templates and prompts. */
  readonly others?: OtherItems
}

/**
 * Returns probable mistakes: selectors that match nothing, tools that nobody can see, clauses that change nothing, names
 * that look alike, and schema keywords that are not checked.
 */
export function lintAll(
  policies: readonly ParsedPolicy[],
  groups: GroupSelectors,
  snapshot: Toolset,
  { written: more = [], unlisted = [], others }: LintMore = {},
): readonly LintWarning[] {
  const { aliases = new Map() } = groups
  const enforced = policies.map((policy) => partsOf(policy).enforced)
  const written = [
    ...selectorsOfPolicies(policies),
    ...selectorsOfGroups(groups),
    ...selectorsOfAliases(aliases),
    ...more,
  ]
  const unmatched = findUnknown(written, snapshot, others).filter(({ selector }) => !mayStillCome(selector, unlisted))
  const naming = new Set(unmatched.map(({ path }) => path))
  return [
    ...unmatched.map(({ path, text }): LintWarning => ({ code: 'selector_unmatched', path, text })),
    ...findUnreachable(enforced, snapshot).map((found): LintWarning => ({ code: 'tool_unreachable', ...found })),
    ...(others ? findUnallowed(enforced, others.items) : []).map((found): LintWarning => ({
      code: 'kind_not_allowed',
      ...found,
    })),
    ...findIdleClauses(policies)
      .filter(({ path }) => !naming.has(path))
      .map(({ code, path, text }): LintWarning => ({ code, path, text })),
    ...findTaken(aliases, snapshot).map((found): LintWarning => ({ code: 'alias_taken', ...found })),
    ...[...findConfusions(snapshot.ids), ...findNearNames(snapshot.ids, aliases)].map(({ ids, text }): LintWarning => ({
      code: 'name_confusable',
      path: 'tools',
      text,
      tools: ids,
    })),
    ...snapshot.tools.flatMap(lintSchema),
  ]
}

/** Returns a warning for each keyword of a tool's input schema that is not checked. */
export function lintSchema(tool: Tool): readonly LintWarning[] {
  return schemaWarningsOf(tool).map(({ pointer, message }) => ({
    code: 'schema_skipped',
    path: `tools.${tool.id}.inputSchema${pointer}`,
    text: message,
    tools: [tool.id],
  }))
}

/** Returns the selectors of every group's `tools`. */
export function selectorsOfGroups(groups: GroupSelectors): readonly WrittenSelector[] {
  return [...groups].flatMap(([name, members]) =>
    members.flatMap((selector, i) =>
      selector.kind === 'joined' ? [] : [{ path: `groups.${name}.tools[${i}]`, selector }],
    ),
  )
}

/** Tools that nobody can ever see, and the part of a policy that denies them. */
interface Unreachable {
  readonly path: string
  readonly tools: readonly string[]
  readonly text: string
}

/**
 * Finds tools that no caller can ever see: a clause denies them for every caller, no `allow` rule mentions them, or they
 * lack a required tag. Does not evaluate function policies.
 */
function findUnreachable(policies: readonly ParsedPolicy[], snapshot: Toolset): readonly Unreachable[] {
  const found = new Map<string, { blocker: Blocker; tools: string[] }>()
  for (const tool of snapshot) {
    const blocker = firstBlocker(policies, tool)
    if (!blocker) continue
    const known = found.get(blocker.path)
    if (known) known.tools.push(tool.id)
    else found.set(blocker.path, { blocker, tools: [tool.id] })
  }
  return [...found.values()].map(({ blocker, tools }) => ({
    path: blocker.path,
    tools,
    text: `nobody can see ${listed(tools)}: ${blocker.says}`,
  }))
}

interface Blocker {
  readonly path: string
  readonly says: string
}

function firstBlocker(policies: readonly ParsedPolicy[], tool: Tool): Blocker | undefined {
  for (const [p, policy] of policies.entries()) {
    const blocker = blockerIn(policy, policy.variable ?? `policy[${p}]`, tool)
    if (blocker) return blocker
  }
  return undefined
}

function blockerIn(policy: ParsedPolicy, path: string, tool: Tool): Blocker | undefined {
  const { name, variable, deny, allow, requireTags } = policy
  const denial = deny.find((clause) => isUnconditional(clause) && isAbout(clause, tool))
  if (denial)
    return {
      path: variable === undefined ? `${path}.deny[${denial.index}]` : denial.path,
      says: `policy "${name}" denies ${denial.label} to everybody`,
    }
  if (allow && !allow.some((clause) => isAbout(clause, tool)))
    return { path: variable ?? `${path}.allow`, says: `policy "${name}" allows other tools only` }
  const tag = requireTags.findIndex((required) => !tool.tags.includes(required))
  if (tag === -1) return undefined
  return { path: `${path}.requireTags[${tag}]`, says: `policy "${name}" requires the tag ${requireTags[tag]}` }
}

/**
 * Finds the servers whose resources or prompts a policy never allows: each policy denies them unless its own `allow` names
 * them.
 */
function findUnallowed(policies: readonly ParsedPolicy[], items: Toolset): readonly Unreachable[] {
  const offered = Map.groupBy(items, ({ kind, namespace }) => `${kind === 'prompt' ? kind : 'resource'}:${namespace}`)
  const blocking = [...policies.entries()].filter(([, { decide, isPart }]) => !decide && !isPart)
  return [...offered].flatMap(([start, all]) => {
    const listedIds = all.slice(0, MAX_IDS).map(({ id }) => id)
    const how = `an allow must name them, as in "${start}:*"`
    const nobody = (says: string) => `nobody can see the ${all.length} ${start.replace(':', 's of ')}: ${says}; ${how}`
    if (policies.every(({ isPart }) => isPart))
      return [{ path: 'policy', tools: listedIds, text: nobody('there is no policy') }]
    return blocking.flatMap(([p, { name, allow = [] }]) =>
      allow.some((clause) => all.some((item) => isAbout(clause, item)))
        ? []
        : [{ path: `policy[${p}].allow`, tools: listedIds, text: nobody(`policy "${name}" allows none of them`) }],
    )
  })
}

function isUnconditional({ when, unless, input }: ParsedClause): boolean {
  return when === undefined && unless === undefined && input === undefined
}

function isAbout({ kind, selectors }: ParsedClause, tool: Tool): boolean {
  return selectors.some((selector) => matchesSelector(selector, tool, kind === 'allow' ? 'certain' : 'possible'))
}

const MAX_LISTED = 5
/** The most ids in a warning. A server may list ten thousand resources. */
const MAX_IDS = 100

function listed(ids: readonly string[]): string {
  const named = ids.slice(0, MAX_LISTED).map((id) => `"${id}"`)
  const more = ids.length - named.length
  return more > 0 ? `${named.join(', ')} and ${more} more` : named.join(', ')
}
