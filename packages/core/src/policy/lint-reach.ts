import { matchesSelector } from '../tools/selector.ts'
import type { Tool } from '../tools/tool.ts'
import type { Toolset } from '../tools/toolset.ts'
import type { ParsedClause, ParsedPolicy } from './parse.ts'

/** Tools that nobody can ever see, and the part of a policy that says so. */
export interface Unreachable {
  readonly path: string
  readonly tools: readonly string[]
  readonly text: string
}

/**
 * Finds tools that no caller could ever see: a clause denies them whoever asks, an allowlist has no clause about them,
 * or they lack a required tag. What a function decides is not known before it is asked.
 */
export function findUnreachable(policies: readonly ParsedPolicy[], snapshot: Toolset): readonly Unreachable[] {
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
    const blocker = blockerIn(policy, `policy[${p}]`, tool)
    if (blocker) return blocker
  }
  return undefined
}

function blockerIn(policy: ParsedPolicy, path: string, tool: Tool): Blocker | undefined {
  const { name, deny, allow, requireTags } = policy
  const denial = deny.find((clause) => isUnconditional(clause) && isAbout(clause, tool))
  if (denial)
    return { path: `${path}.deny[${denial.index}]`, says: `policy "${name}" denies ${denial.label} to everybody` }
  if (allow && !allow.some((clause) => isAbout(clause, tool)))
    return { path: `${path}.allow`, says: `policy "${name}" allows other tools only` }
  const tag = requireTags.findIndex((required) => !tool.tags.includes(required))
  if (tag === -1) return undefined
  return { path: `${path}.requireTags[${tag}]`, says: `policy "${name}" requires the tag ${requireTags[tag]}` }
}

function isUnconditional({ when, unless, input }: ParsedClause): boolean {
  return when === undefined && unless === undefined && input === undefined
}

function isAbout({ kind, selectors }: ParsedClause, tool: Tool): boolean {
  return selectors.some((selector) => matchesSelector(selector, tool, kind === 'allow' ? 'certain' : 'possible'))
}

const MAX_LISTED = 5

function listed(ids: readonly string[]): string {
  const named = ids.slice(0, MAX_LISTED).map((id) => `"${id}"`)
  const more = ids.length - named.length
  return more > 0 ? `${named.join(', ')} and ${more} more` : named.join(', ')
}
