import type { OutcomeWord } from '../decision/words.ts'
import type { Group } from '../tools/groups.ts'
import type { Tool } from '../tools/tool.ts'
import { judge, type Verdict } from './conditions.ts'
import type { World, WrittenClause, WrittenPolicy } from './worlds.ts'

/**
 * The words of the design as plain loops: no index, no cache, no bit sets.
 *
 * Written from the text and not from the engine, to be compared with it.
 */
export function referenceDecide(world: World, tool: Tool | undefined, called: boolean): OutcomeWord {
  if (!tool) return 'deny'
  const words: OutcomeWord[] = world.policies.map((policy) => decidePolicy(world, policy, tool, called))
  const { caller, visibility, activeTools } = world
  // A caller must hold all of a tool's `requiredScopes`.
  if (!tool.requiredScopes.every((scope) => (caller.scopes ?? []).includes(scope))) words.push('deny')
  if (visibility && !visibility.includes(tool.id)) words.push('deny')
  if (activeTools && !activeTools.includes(tool.id)) words.push('wait')
  if (!isAvailable(world, tool)) words.push('wait')
  for (const word of ['deny', 'wait', 'ask'] as const) if (words.includes(word)) return word
  return 'allow'
}

/**
 * `deny` clause holds → deny; `allow` present and none holds → deny; a `requireTags` tag missing → deny;
 * `ask` clause holds → ask; else allow.
 */
function decidePolicy(world: World, policy: WrittenPolicy, tool: Tool, called: boolean): OutcomeWord {
  const of = (kind: 'allow' | 'deny' | 'ask') =>
    (policy[kind] ?? []).map((clause) => clauseHolds(world, kind, clause, tool, called))
  // An error in a `deny` or `ask` clause is a deny.
  const denies = of('deny')
  const asks = of('ask')
  if (denies.some((verdict) => verdict !== false) || asks.includes('error')) return 'deny'
  // In an `allow` clause it does not hold.
  if (policy.allow && !of('allow').includes(true)) return 'deny'
  if (!(policy.requireTags ?? []).every((tag) => tool.tags.includes(tag))) return 'deny'
  return asks.includes(true) ? 'ask' : 'allow'
}

function clauseHolds(
  { groups, caller, input }: World,
  kind: 'allow' | 'deny' | 'ask',
  clause: WrittenClause,
  tool: Tool,
  called: boolean,
): Verdict {
  if (!clause.match.some((selector) => names(selector, tool, groups, kind === 'allow'))) return false
  // While the input is unknown, an `allow` clause with `input` holds and a `deny` or `ask` clause with `input` does not.
  if (clause.input && !called && kind !== 'allow') return false
  const test = (written: WrittenClause['when'], known: object) =>
    written === undefined ? undefined : judge(written.judgement, { caller, tool, ...known })
  const when = test(clause.when, {}) ?? true
  if (when !== true) return when
  // In `unless` there is no exemption; in an `allow` clause an error anywhere does not hold.
  const unless = test(clause.unless, {}) ?? false
  if (unless === true || (unless === 'error' && kind === 'allow')) return false
  return called ? (test(clause.input, { input }) ?? true) : true
}

function names(selector: string, tool: Tool, groups: World['groups'], certain: boolean): boolean {
  const [head, rest] = selector.includes(':') ? (selector.split(':') as [string, string]) : [undefined, selector]
  if (head === 'group') return (groups[rest]?.tools ?? []).some((member) => names(member, tool, groups, certain))
  if (head === 'tag') return tool.tags.includes(rest)
  if (head === 'category') return tool.category === rest
  if (head === 'hint')
    return certain ? tool.hintsTrusted && hasHint(tool, rest, false) : hasHint(tool, rest, !tool.hintsTrusted)
  if (selector === '*') return true
  if (head === undefined) return tool.namespace === undefined && globs(rest, tool.name)
  if (head === '*') return globs(rest, tool.name)
  return tool.namespace !== undefined && globs(head, tool.namespace) && globs(rest, tool.name)
}

/** Absent hints take MCP's defaults; where they are only claimed, the default holds beside the claim. */
function hasHint({ annotations }: Tool, hint: string, orDefault: boolean): boolean {
  const { readOnlyHint = false, destructiveHint = true, idempotentHint = false, openWorldHint = true } = annotations
  if (hint === 'read-only') return readOnlyHint
  if (hint === 'destructive') return (destructiveHint && !readOnlyHint) || orDefault
  if (hint === 'idempotent') return idempotentHint
  return openWorldHint || orDefault
}

function globs(pattern: string, text: string): boolean {
  const escaped = pattern.split('*').map((part) => part.replaceAll(/[^a-z]/gi, String.raw`\$&`))
  return new RegExp(`^${escaped.join('.*')}$`).test(text)
}

/** A tool is available if every conditional group that lists it is, and whatever those depend on. */
function isAvailable({ groups, up }: World, tool: Tool): boolean {
  const groupIsUp = (name: string): boolean => {
    const group = groups[name] as Group
    const itself = group.visibility !== 'conditional' || up.includes(name)
    return itself && (group.dependsOn ?? []).every(groupIsUp)
  }
  return Object.entries(groups).every(
    ([name, group]) => !group.tools.some((selector) => names(selector, tool, groups, false)) || groupIsUp(name),
  )
}
