import type { OutcomeWord, Tool, ToolDefinition } from '@toolgate/core'
import type { Group } from '@toolgate/core/groups'
import { defineTemplate } from '@toolgate/core/toolset'
import { judge, type Verdict } from './conditions.ts'
import type { WrittenClause, WrittenDecide, WrittenPolicy } from './policies.ts'
import type { Unlocking } from '@toolgate/change'
import { idOf, type Moment, type World, type WrittenItem } from './worlds.ts'

/**
 * Decides as the design says, with plain loops: no index, no cache, no bit sets.
 *
 * It is written from the text, not from the engine, so that the two can be compared.
 */
export function referenceDecide(world: World, tool: Tool | undefined, called: boolean): OutcomeWord {
  if (!tool) return 'deny'
  if (tool.kind !== 'resource') return decideItem(world, tool, called)
  // A read is decided as its URI and as every template that may match it. Its input is known even when it is listed.
  const known = { ...world, input: { uri: tool.uri ?? '' } }
  return strictestWord([tool, ...templatesFor(world, tool)].map((item) => decideItem(known, item, true)))
}

function templatesFor({ items }: World, { uri = '', namespace }: Tool): readonly Tool[] {
  return items.flatMap((item) => {
    if (item.kind !== 'template' || item.namespace !== namespace) return []
    return matchesTemplate(item.called, uri) ? [defineTemplate({ ...templateOf(item) })] : []
  })
}

function templateOf({ called, namespace, tags, requiredScopes }: WrittenItem) {
  return { uriTemplate: called, namespace, tags, requiredScopes }
}

/**
 * Whether a template matches a URI. `{name}` matches within a segment, and `{+name}` anything; a template with any
 * other expression matches every URI.
 */
function matchesTemplate(template: string, uri: string): boolean {
  const expressions = template.match(/\{[^}]*\}/g) ?? []
  if (!expressions.every((one) => /^\{\+?\w+\}$/.test(one))) return true
  const pattern = template.replaceAll(/\{\+\w+\}/g, '.*').replaceAll(/\{\w+\}/g, '[^/]*')
  return new RegExp(`^${pattern}$`).test(uri)
}

/** Whether a gate has no policy. Such a gate and its forks offer tools only. */
function isBare({ policies, forks }: World): boolean {
  let isEmpty = policies.length === 0
  for (const fork of forks) if (!fork.inherit) isEmpty = fork.policies.length === 0
  return isEmpty
}

function decideItem(world: World, tool: Tool, called: boolean): OutcomeWord {
  const words: OutcomeWord[] = policiesOf(world).map((policy) => decidePolicy(world, policy, tool, called))
  if (tool.kind !== 'tool' && isBare(world)) words.push('deny')
  const { caller, visibility, activeTools } = world
  // A caller must hold all of a tool's `requiredScopes`.
  if (!tool.requiredScopes.every((scope) => (caller.scopes ?? []).includes(scope))) words.push('deny')
  if (visibility && !visibility.includes(tool.id)) words.push('deny')
  if (activeTools && !activeTools.includes(tool.id)) words.push('wait')
  if (!isAvailable(world, tool)) words.push('wait')
  if (isLocked(world, tool)) words.push('wait')
  return strictestWord(words)
}

/**
 * Whether a view lists a tool.
 *
 * A view keeps its policy, scopes and visibility. A step reads availability and locks again, and does not list a tool
 * that the current policy refuses.
 */
export function referenceLists(world: World, moment: Moment, tool: Tool): boolean {
  const [first, ...later] = worldsOf(world, moment)
  const worlds = moment.through === 'options' ? [first] : [first, ...later]
  return isVisible(strictestOf(worlds, tool, false))
}

/**
 * Whether a view lists the gate's own `request_tools`. Everything except locks must allow it. A group that opens by
 * request must be closed and contain a tool that only locks and the step hide.
 */
export function referenceListsRequests(
  world: World,
  moment: Moment,
  requestTools: Tool,
  tools: readonly Tool[],
): boolean {
  const [first, ...later] = worldsOf(world, moment)
  const worlds = moment.through === 'options' ? [first] : [first, ...later]
  const unlocked = worlds.map(withoutLocks)
  const nextStep = unlocked.map((one) => ({ ...one, activeTools: undefined }))
  if (first.caller.session === undefined || !isVisible(strictestOf(unlocked, requestTools, false))) return false
  return Object.entries(first.groups).some(
    ([name, group]) =>
      group.unlock === 'request' &&
      !first.opened.some((trigger) => opens(trigger, name, group, first)) &&
      tools.some((tool) => isMember(group, tool, first.groups) && isVisible(strictestOf(nextStep, tool, false))),
  )
}

function withoutLocks(world: World): World {
  const groups = Object.entries(world.groups).map(([name, { unlock: _, ...group }]) => [name, group] as const)
  return { ...world, groups: Object.fromEntries(groups) }
}

/**
 * Returns a view's explanation of a tool and the outcome of a call: the stricter of the view's world and the current
 * one.
 */
export function referenceAnswers(
  world: World,
  moment: Moment,
  tool: Tool,
): Record<'explained' | 'called', OutcomeWord> {
  const worlds = worldsOf(world, moment)
  const explained = strictestOf(worlds, tool, false)
  // A call that is refused before its input is read has that refusal. A template stands for its URIs, and runs nothing
  // itself.
  if (tool.kind === 'template') return { explained, called: isVisible(explained) ? 'wait' : explained }
  return { explained, called: isVisible(explained) ? strictestOf(worlds, tool, true) : explained }
}

/** Returns the world of a view or a step, and the current world if it differs. */
function worldsOf(world: World, moment: Moment): readonly [World, ...World[]] {
  const today = since(world, moment)
  if (today === world) return [world]
  return [moment.through === 'options' ? world : { ...world, up: today.up, opened: today.opened }, today]
}

function since(world: World, { upSince, forgottenSince, openedSince, policiesSince }: Moment): World {
  if (!upSince && !forgottenSince && !policiesSince && openedSince.length === 0) return world
  return {
    ...world,
    policies: policiesSince ?? world.policies,
    up: upSince ?? world.up,
    opened: forgottenSince ? openedSince : [...world.opened, ...openedSince],
  }
}

function strictestOf(worlds: readonly World[], tool: Tool, called: boolean): OutcomeWord {
  return strictestWord(worlds.map((world) => referenceDecide(world, tool, called)))
}

function strictestWord(words: readonly OutcomeWord[]): OutcomeWord {
  for (const word of ['deny', 'wait', 'ask'] as const) if (words.includes(word)) return word
  return 'allow'
}

/** Whether an outcome is visible: `allow` or `ask`. */
function isVisible(word: OutcomeWord): boolean {
  return word === 'allow' || word === 'ask'
}

/**
 * Returns the policies of a fork. A fork adds its policies to the inherited ones, or has only its own if it does not
 * inherit.
 */
function policiesOf({ policies, forks }: World): readonly WrittenPolicy[] {
  let all = policies
  for (const fork of forks) all = fork.inherit ? [...all, ...fork.policies] : fork.policies
  return all
}

/**
 * Decides by a policy. A `deny` clause matches → deny; `allow` exists and no clause matches → deny; a `requireTags` tag
 * is missing → deny; an `ask` clause matches → ask; else allow.
 */
function decidePolicy(world: World, policy: WrittenPolicy, tool: Tool, called: boolean): OutcomeWord {
  if (policy.decide) return decideByFunction(world, policy.decide, tool)
  const of = (kind: 'allow' | 'deny' | 'ask') =>
    (policy[kind] ?? []).map((clause) => clauseHolds(world, kind, clause, tool, called))
  // An error in a `deny` or `ask` clause is a deny.
  const denies = of('deny')
  const asks = of('ask')
  if (denies.some((verdict) => verdict !== false) || asks.includes('error')) return 'deny'
  // In an `allow` clause an error means no match. An absent `allow` is `*`, which matches only tools.
  if (policy.allow ? !of('allow').includes(true) : tool.kind !== 'tool') return 'deny'
  if (!(policy.requireTags ?? []).every((tag) => tool.tags.includes(tag))) return 'deny'
  return asks.includes(true) ? 'ask' : 'allow'
}

/** Decides by a function. A throw, a promise and any invalid answer deny. */
function decideByFunction({ caller }: World, { kinds, judgement, yes, no }: WrittenDecide, tool: Tool): OutcomeWord {
  if (tool.kind !== 'tool' && !kinds.includes(tool.kind)) return 'deny'
  const verdict = judge(judgement, { caller, tool })
  const answer = verdict === 'error' ? 'nonsense' : verdict ? yes : no
  return answer === 'allow' || answer === 'ask' ? answer : 'deny'
}

function clauseHolds(
  { groups, caller, input }: World,
  kind: 'allow' | 'deny' | 'ask',
  clause: WrittenClause,
  tool: Tool,
  called: boolean,
): Verdict {
  if (!clause.match.some((selector) => names(selector, tool, groups, kind === 'allow'))) return false
  // While the input is unknown, an `allow` clause with `input` matches, and a `deny` or `ask` clause with `input` does
  // not.
  if (clause.input && !called && kind !== 'allow') return false
  const test = (written: WrittenClause['when'], known: object) =>
    written === undefined ? undefined : judge(written.judgement, { caller, tool, ...known })
  const when = test(clause.when, {}) ?? true
  if (when !== true) return when
  // An error in `unless` grants no exemption. In an `allow` clause an error anywhere means no match.
  const unless = test(clause.unless, {}) ?? false
  if (unless === true || (unless === 'error' && kind === 'allow')) return false
  return called ? (test(clause.input, { input }) ?? true) : true
}

function names(selector: string, tool: Named, groups: World['groups'], certain: boolean): boolean {
  if (selector.startsWith('server:')) return tool.namespace === selector.slice('server:'.length)
  const [, kind, server = '', rest = ''] = /^(resource|prompt):([^:]*):(.*)$/.exec(selector) ?? []
  if (kind !== undefined) {
    if (tool.kind === 'tool' || (kind === 'prompt') !== (tool.kind === 'prompt')) return false
    return globs(server, tool.namespace ?? '') && globs(rest, tool.uri ?? tool.name)
  }
  if (tool.kind !== 'tool') return false
  return namesTool(selector, tool, groups, certain)
}

function namesTool(selector: string, tool: Named, groups: World['groups'], certain: boolean): boolean {
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

/**
 * Whether a tool has a hint. Absent hints have MCP's defaults. For hints that are only claimed, the default counts in
 * addition to the claim.
 */
function hasHint({ annotations }: Named, hint: string, orDefault: boolean): boolean {
  const { readOnlyHint = false, destructiveHint = true, idempotentHint = false, openWorldHint = true } = annotations
  if (hint === 'read-only') return readOnlyHint
  if (hint === 'destructive') return (destructiveHint && !readOnlyHint) || orDefault
  if (hint === 'idempotent') return idempotentHint
  return openWorldHint || orDefault
}

function globs(pattern: string, text: string): boolean {
  if (!pattern.includes('*')) return pattern === text
  const rest = pattern.slice(1)
  if (pattern.startsWith('*')) return globs(rest, text) || (text !== '' && globs(pattern, text.slice(1)))
  return pattern[0] === text[0] && globs(rest, text.slice(1))
}

/**
 * Whether a tool is available: every conditional group that lists it, and each group that these depend on, is
 * available.
 */
function isAvailable({ groups, up }: World, tool: Tool): boolean {
  const groupIsUp = (name: string): boolean => {
    const group = groups[name] as Group
    const itself = group.visibility !== 'conditional' || up.includes(name)
    return itself && (group.dependsOn ?? []).every(groupIsUp)
  }
  return Object.entries(groups).every(([name, group]) => !isMember(group, tool, groups) || groupIsUp(name))
}

/**
 * Whether a tool is locked. A locked group is opened for one session by its rule. Without a session, a lock affects
 * listing only.
 */
function isLocked(world: World, tool: Tool): boolean {
  const { groups, opened, caller } = world
  if (caller.session === undefined) return false
  return Object.entries(groups).some(
    ([name, group]) =>
      group.unlock !== undefined &&
      isMember(group, tool, groups) &&
      !opened.some((trigger) => opens(trigger, name, group, world)),
  )
}

function opens(trigger: Unlocking, name: string, group: Group, { tools, groups }: World): boolean {
  if ('request' in trigger) return group.unlock === 'request' && trigger.request === name
  if ('event' in trigger) return typeof group.unlock === 'object' && group.unlock.event === trigger.event
  const found = tools.filter((definition) => trigger.found.includes(idOf(definition)))
  return group.unlock === 'search' && found.some((definition) => isMember(group, toNamed(definition), groups))
}

function isMember(group: Group, tool: Named, groups: World['groups']): boolean {
  return group.tools.some((selector) => names(selector, tool, groups, false))
}

/** The fields by which selectors match a tool. */
type Named = Pick<Tool, 'kind' | 'uri' | 'namespace' | 'name' | 'tags' | 'category' | 'annotations' | 'hintsTrusted'>

function toNamed(definition: ToolDefinition): Named {
  const { namespace, name, tags = [], category, annotations = {}, hintsTrusted = true } = definition
  return { kind: 'tool', uri: undefined, namespace, name, tags, category, annotations, hintsTrusted }
}
