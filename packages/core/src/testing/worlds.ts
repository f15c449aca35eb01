import fc from 'fast-check'
import type { Caller } from '../caller.ts'
import { OUTCOMES, type OutcomeWord } from '../decision/words.ts'
import type { CallOutcome } from '../door/outcome.ts'
import { createGate, type Gate, type GateOptions } from '../gate.ts'
import { memoryAvailability, type MemoryAvailability } from '../memory/availability.ts'
import type { Clause, Policy } from '../policy/policy.ts'
import type { Source } from '../tools/catalog.ts'
import type { Group } from '../tools/groups.ts'
import { defineTool, type Tool, type ToolDefinition } from '../tools/tool.ts'
import {
  CHAT_TYPES,
  PATHS,
  ROLES,
  TEAMS,
  toCondition,
  USERS,
  type WrittenCondition,
  writtenCondition,
} from './conditions.ts'

/** Everything that a decision depends on, as data. */
export interface World {
  readonly tools: readonly ToolDefinition[]
  readonly groups: Readonly<Record<string, Group>>
  readonly policies: readonly WrittenPolicy[]
  /** The groups that are available now. */
  readonly up: readonly string[]
  readonly caller: Caller
  readonly visibility: readonly string[] | undefined
  readonly activeTools: readonly string[] | undefined
  readonly input: Readonly<Record<string, string>>
}

export interface WrittenClause {
  readonly match: readonly string[]
  readonly when?: WrittenCondition | undefined
  readonly unless?: WrittenCondition | undefined
  readonly input?: WrittenCondition | undefined
  readonly message?: string | undefined
}

export interface WrittenPolicy {
  readonly allow?: readonly WrittenClause[] | undefined
  readonly deny?: readonly WrittenClause[] | undefined
  readonly ask?: readonly WrittenClause[] | undefined
  readonly requireTags?: readonly string[] | undefined
}

export function toPolicy({ allow, deny, ask, requireTags }: WrittenPolicy): Policy {
  return {
    ...(allow && { allow: allow.map(toClause) }),
    ...(deny && { deny: deny.map(toClause) }),
    ...(ask && { ask: ask.map(toClause) }),
    ...(requireTags && { requireTags }),
  }
}

function toClause({ match, when, unless, input, message }: WrittenClause): Clause {
  return {
    match,
    ...(when && { when: toCondition(when) }),
    ...(unless && { unless: toCondition(unless) }),
    ...(input && { input: toCondition(input) }),
    ...(message !== undefined && { message }),
  }
}

const NAMESPACES = [undefined, 'files', 'web', '__proto__'] as const
const NAMES = ['read', 'write', 'delete_all', 'toString', 'constructor'] as const
const TAGS = ['read', 'danger', '__proto__'] as const
const CATEGORIES = ['search', 'admin'] as const
const SCOPES = ['s1', 's2'] as const
const GROUPS = ['g1', 'g2', 'constructor'] as const

const anyBoolean = fc.option(fc.boolean(), { nil: undefined })

const toolArbitrary: fc.Arbitrary<ToolDefinition> = fc.record({
  namespace: fc.constantFrom(...NAMESPACES),
  name: fc.constantFrom(...NAMES),
  tags: fc.subarray([...TAGS]),
  category: fc.constantFrom(undefined, ...CATEGORIES),
  requiredScopes: fc.oneof({ weight: 3, arbitrary: fc.constant([]) }, fc.subarray([...SCOPES])),
  annotations: fc.record({
    readOnlyHint: anyBoolean,
    destructiveHint: anyBoolean,
    idempotentHint: anyBoolean,
    openWorldHint: anyBoolean,
  }) as fc.Arbitrary<object>,
  hintsTrusted: fc.boolean(),
})

export const callerArbitrary: fc.Arbitrary<Caller> = fc.record({
  user: fc.constantFrom(undefined, ...USERS),
  roles: fc.option(fc.subarray([...ROLES]), { nil: undefined }),
  scopes: fc.option(fc.subarray([...SCOPES]), { nil: undefined }),
  chat: fc.constantFrom(undefined, { id: 'c' }, ...CHAT_TYPES.map((type) => ({ id: 'c', type }))),
  attributes: fc.constantFrom(undefined, { number: 5 }, ...TEAMS.map((team) => ({ team, number: 5 }))),
})

function idOf({ namespace, name }: ToolDefinition): string {
  return namespace === undefined ? name : `${namespace}:${name}`
}

/** Selectors that name something in most worlds; ids only of tools that there are. */
function selectorArbitrary(ids: readonly string[], groups: readonly string[]): fc.Arbitrary<string> {
  return fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom(...ids) },
    {
      weight: 2,
      arbitrary: fc.constantFrom('*', 'files:*', 'web:re*', '*:delete_*', '*:*o*', 're*', '__proto__:*', '*es:*d'),
    },
    fc.constantFrom(...TAGS.map((tag) => `tag:${tag}`)),
    fc.constantFrom(...CATEGORIES.map((category) => `category:${category}`)),
    fc.constantFrom('hint:read-only', 'hint:destructive', 'hint:idempotent', 'hint:open-world'),
    ...(groups.length > 0 ? [fc.constantFrom(...groups.map((group) => `group:${group}`))] : []),
  )
}

function clauseArbitrary(selector: fc.Arbitrary<string>): fc.Arbitrary<WrittenClause> {
  const values = { tags: TAGS, names: NAMES }
  const rarely = <T>(arbitrary: fc.Arbitrary<T>) =>
    fc.oneof({ weight: 3, arbitrary: fc.constant(undefined) }, { weight: 2, arbitrary })
  return fc.record({
    match: fc.array(selector, { minLength: 1, maxLength: 2 }),
    when: rarely(writtenCondition({ ...values, withInput: false })),
    unless: rarely(writtenCondition({ ...values, withInput: false })),
    input: rarely(writtenCondition({ ...values, withInput: true })),
    message: fc.constantFrom(undefined, undefined, 'Not for you.'),
  })
}

function policyArbitraryOf(selector: fc.Arbitrary<string>): fc.Arbitrary<WrittenPolicy> {
  const clauses = (maxLength: number) => fc.array(clauseArbitrary(selector), { maxLength })
  return fc.record({
    allow: fc.option(clauses(3), { nil: undefined, freq: 2 }),
    deny: fc.option(clauses(2), { nil: undefined, freq: 2 }),
    ask: fc.option(clauses(2), { nil: undefined, freq: 2 }),
    requireTags: fc.oneof({ weight: 5, arbitrary: fc.constant(undefined) }, fc.subarray([...TAGS], { maxLength: 1 })),
  })
}

/** Groups that depend on later ones only, so that there is no cycle. */
function groupsArbitrary(ids: readonly string[]): fc.Arbitrary<Record<string, Group>> {
  const selector = selectorArbitrary(ids, [])
  const groupAt = (at: number) =>
    fc.record({
      tools: fc.array(selector, { maxLength: 2 }),
      visibility: fc.constantFrom('always' as const, 'conditional' as const),
      dependsOn: fc.subarray(GROUPS.slice(at + 1)),
    })
  return fc
    .tuple(fc.constantFrom(0, 0, 0, 1, 2, 3), ...GROUPS.map((_, at) => groupAt(at)))
    .map(([first, ...groups]) =>
      Object.fromEntries(GROUPS.map((name, at) => [name, groups[at] as Group] as const).slice(first)),
    )
}

/** A world, and policies more for what is added to it later. */
export interface WorldWithMore {
  readonly world: World
  readonly more: readonly WrittenPolicy[]
}

export const worldWithMore: fc.Arbitrary<WorldWithMore> = fc
  .uniqueArray(toolArbitrary, { minLength: 1, maxLength: 7, selector: idOf })
  .chain((tools) => {
    const ids = tools.map(idOf)
    return groupsArbitrary(ids).chain((groups) => {
      const policy = policyArbitraryOf(selectorArbitrary(ids, Object.keys(groups)))
      const world = fc.record({
        tools: fc.constant(tools),
        groups: fc.constant(groups),
        policies: fc.array(policy, { maxLength: 3 }),
        up: fc.subarray([...GROUPS]),
        caller: callerArbitrary,
        visibility: fc.option(fc.subarray([...ids, 'no-such-tool']), { nil: undefined, freq: 2 }),
        activeTools: fc.option(fc.subarray(ids), { nil: undefined, freq: 2 }),
        input: fc.constantFrom<Record<string, string>>({}, ...PATHS.map((path) => ({ path }))),
      })
      return fc.record({ world, more: fc.array(policy, { minLength: 1, maxLength: 2 }) })
    })
  })

export const worldArbitrary: fc.Arbitrary<World> = worldWithMore.map(({ world }) => world)

/** A gate of a world, with what its tools themselves say of being run. */
export interface Opened {
  readonly gate: Gate
  readonly tools: readonly Tool[]
  readonly availability: MemoryAvailability
  /** How often each tool ran, by its id: the tools' own word. */
  readonly ran: ReadonlyMap<string, number>
  /** Offers only those of the tools from now on. */
  offer(ids: readonly string[]): void
}

export function openWorld(world: World, options: GateOptions = {}): Opened {
  const ran = new Map<string, number>()
  const tools = world.tools.map((definition) => {
    const id = idOf(definition)
    return defineTool({
      ...definition,
      execute() {
        ran.set(id, (ran.get(id) ?? 0) + 1)
        return 'ran'
      },
    })
  })
  let offered: readonly Tool[] = tools
  const listeners = new Set<() => void>()
  const source: Source = {
    name: 'live',
    tools: () => offered,
    subscribe(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
  const availability = memoryAvailability(
    Object.fromEntries(Object.keys(world.groups).map((name) => [name, { available: world.up.includes(name) }])),
  )
  const gate = createGate({
    sources: [source],
    groups: world.groups,
    policy: world.policies.map(toPolicy),
    availability,
    ...options,
  })
  const offer = (ids: readonly string[]) => {
    offered = tools.filter((tool) => ids.includes(tool.id))
    for (const listener of listeners) listener()
  }
  return { gate, tools, availability, ran, offer }
}

export function viewOptionsOf({ visibility, activeTools }: World): {
  visibility?: readonly string[]
  activeTools?: readonly string[]
} {
  return { ...(visibility && { visibility }), ...(activeTools && { activeTools }) }
}

/** How many runs a property takes: many more on demand. */
export function runs(count: number): { numRuns: number } {
  return { numRuns: process.env['TOOLGATE_LONG'] ? count * 50 : count }
}

/** The word of the decision that a call came to. */
export function wordOf(outcome: CallOutcome): OutcomeWord {
  switch (outcome.status) {
    case 'refused':
      return outcome.decision.outcome
    case 'waiting':
      return 'ask'
    case 'done':
    case 'failed':
      return 'allow'
  }
}

/** Whether `after` lets no more pass than `before` did. */
export function isNoWider(after: OutcomeWord, before: OutcomeWord): boolean {
  return OUTCOMES.indexOf(after) >= OUTCOMES.indexOf(before)
}
