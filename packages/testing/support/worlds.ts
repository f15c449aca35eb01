import fc from 'fast-check'
import {
  type Caller,
  createGate,
  defineTool,
  type Gate,
  type GateOptions,
  type OutcomeWord,
  type Tool,
  type ToolDefinition,
  type View,
} from '@toolgate/core'
import { OUTCOMES } from '../../core/src/decide/decision.ts'
import type { Unlocking } from '@toolgate/change'
import { unlock } from '@toolgate/change/internal'
import { type Group, memoryAvailability, type MemoryAvailability, type UnlockRule } from '@toolgate/core/groups'
import { definePrompt, defineResource, defineTemplate, type ItemKind, type Source } from '@toolgate/core/toolset'
import { ITEM_KINDS } from '@toolgate/core/words'
import { CHAT_TYPES, PATHS, ROLES, TEAMS, USERS } from './conditions.ts'
import { policyArbitrary, toPolicy, type WrittenPolicy } from './policies.ts'

/** All data that a decision depends on. */
export interface World {
  readonly tools: readonly ToolDefinition[]
  readonly items: readonly WrittenItem[]
  readonly groups: Readonly<Record<string, Group>>
  readonly policies: readonly WrittenPolicy[]
  /** Forks, each of the previous one; the first is a fork of the gate. The last fork is tested. */
  readonly forks: readonly WrittenFork[]
  /** The groups that are available now. */
  readonly up: readonly string[]
  /** The ways in which the caller's session has opened groups. */
  readonly opened: readonly Unlocking[]
  readonly caller: Caller
  readonly visibility: readonly string[] | undefined
  readonly activeTools: readonly string[] | undefined
  readonly input: Readonly<Record<string, string>>
}

/** A gate on top of the gate before it. */
export interface WrittenFork {
  readonly policies: readonly WrittenPolicy[]
  readonly inherit: boolean
}

const NAMESPACES = [undefined, 'files', 'web', '__proto__'] as const
const NAMES = ['read', 'write', 'delete_all', 'toString', 'constructor'] as const
const TAGS = ['read', 'danger', '__proto__'] as const
const CATEGORIES = ['search', 'admin'] as const
const SCOPES = ['s1', 's2'] as const
const GROUPS = ['g1', 'g2', 'constructor'] as const
const SESSIONS = ['s1', 's2'] as const
const EVENTS = ['e1', '__proto__'] as const

/** A resource, a template or a prompt. */
export interface WrittenItem {
  readonly kind: Exclude<ItemKind, 'tool'>
  readonly namespace: string
  /** A URI, a template, or a name. */
  readonly called: string
  readonly tags: readonly string[]
  readonly requiredScopes: readonly string[]
}

const SERVERS = ['files', 'web'] as const
const CALLED = [
  ['resource', 'db://read'],
  ['resource', 'db://deep/read'],
  ['resource', 'web://read'],
  ['template', 'db://{name}'],
  ['template', 'db://{+path}'],
  ['template', 'web://{?any}'],
  ['prompt', 'read'],
  ['prompt', 'constructor'],
] as const satisfies readonly (readonly [WrittenItem['kind'], string])[]

const itemArbitrary: fc.Arbitrary<WrittenItem> = fc
  .tuple(fc.constantFrom(...CALLED), fc.constantFrom(...SERVERS), fc.subarray([...TAGS], { maxLength: 1 }))
  .chain(([[kind, called], namespace, tags]) =>
    fc.record({
      kind: fc.constant(kind),
      namespace: fc.constant(namespace),
      called: fc.constant(called),
      tags: fc.constant(tags),
      requiredScopes: fc.oneof({ weight: 5, arbitrary: fc.constant([]) }, fc.subarray([...SCOPES])),
    }),
  )

export function itemIdOf({ kind, namespace, called }: WrittenItem): string {
  return `${kind === 'prompt' ? kind : 'resource'}:${namespace}:${called}`
}

/** Returns the ids of everything in a world. */
export function idsOf({ tools, items }: Pick<World, 'tools' | 'items'>): string[] {
  return [...tools.map(idOf), ...items.map(itemIdOf)]
}

/** Returns the ids of everything that a view lists, of all kinds. */
export function idsIn(view: Pick<View, 'ids' | 'items'>): string[] {
  return [...view.ids, ...ITEM_KINDS.flatMap((kind) => (kind === 'tool' ? [] : view.items(kind).map(({ id }) => id)))]
}

/** Its URI, template, or name. */
export function inputOf({ input }: World, { kind, uri }: Pick<Tool, 'kind' | 'uri'>): World['input'] {
  return kind === 'resource' ? { uri: uri ?? '' } : input
}

/** Selectors of other kinds; those of a whole server only where they may be. */
const ITEM_SELECTORS = [
  'resource:*:*',
  'prompt:*:*',
  'resource:files:db:*',
  'resource:*:*read',
  'prompt:web:*',
] as const
const SERVER_SELECTORS = ['server:files', 'server:web'] as const

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
  }),
  hintsTrusted: fc.boolean(),
})

export const callerArbitrary: fc.Arbitrary<Caller> = fc.record({
  user: fc.constantFrom(undefined, ...USERS),
  roles: fc.option(fc.subarray([...ROLES]), { nil: undefined }),
  scopes: fc.option(fc.subarray([...SCOPES]), { nil: undefined }),
  session: fc.constantFrom(undefined, ...SESSIONS),
  chat: fc.constantFrom(undefined, { id: 'c' }, ...CHAT_TYPES.map((type) => ({ id: 'c', type }))),
  attributes: fc.constantFrom(undefined, { number: 5 }, ...TEAMS.map((team) => ({ team, number: 5 }))),
})

export function idOf({ namespace, name }: ToolDefinition): string {
  return namespace === undefined ? name : `${namespace}:${name}`
}

/** Lets more worlds have something beside tools: where a policy does not say what it allows, it allows everything. */
function allowingItems({ decide, allow, ...rest }: WrittenPolicy): WrittenPolicy {
  return decide ? { decide } : { ...rest, allow: allow ?? [{ match: ['*', 'resource:*:*', 'prompt:*:*'] }] }
}

/** Generates selectors that match something in most worlds. Ids are only those of existing tools. */
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

/** Generates groups that depend on later ones only, so that there is no cycle. */
function groupsArbitrary(ids: readonly string[]): fc.Arbitrary<Record<string, Group>> {
  const selector = selectorArbitrary(ids, [])
  const groupAt = (at: number) =>
    fc.record({
      tools: fc.array(selector, { maxLength: 2 }),
      visibility: fc.constantFrom('always' as const, 'conditional' as const),
      dependsOn: fc.subarray(GROUPS.slice(at + 1)),
      unlock: fc.constantFrom<UnlockRule | undefined>(
        undefined,
        undefined,
        'request',
        'search',
        ...EVENTS.map((event) => ({ event })),
      ),
    }) as fc.Arbitrary<Group>
  return fc
    .tuple(fc.constantFrom(0, 0, 0, 1, 2, 3), ...GROUPS.map((_, at) => groupAt(at)))
    .map(([first, ...groups]) =>
      Object.fromEntries(GROUPS.map((name, at) => [name, groups[at] as Group] as const).slice(first)),
    )
}

function triggerArbitrary(ids: readonly string[]): fc.Arbitrary<Unlocking> {
  return fc.oneof(
    fc.record({ request: fc.constantFrom(...GROUPS) }),
    fc.record({ event: fc.constantFrom(...EVENTS) }),
    fc.record({ found: fc.subarray([...ids, 'no-such-tool'], { maxLength: 2 }) }),
  )
}

/** The parts of a world that may change between two questions to the same gate. */
export type Situation = Pick<World, 'up' | 'opened' | 'caller' | 'visibility' | 'activeTools' | 'input'>

function situationArbitrary(ids: readonly string[]): fc.Arbitrary<Situation> {
  return fc.record({
    up: fc.subarray([...GROUPS]),
    opened: fc.array(triggerArbitrary(ids), { maxLength: 2 }),
    caller: callerArbitrary,
    visibility: fc.option(fc.subarray([...ids, 'no-such-tool']), { nil: undefined, freq: 2 }),
    activeTools: fc.option(fc.subarray([...ids]), { nil: undefined, freq: 2 }),
    input: fc.constantFrom<Record<string, string>>({}, ...PATHS.map((path) => ({ path }))),
  })
}

/** The origin of a view, and the changes between the view and the question. */
export interface Moment extends Situation {
  /** How the active tools are set: as an option of the view, by narrowing it, or by `prepareStep`. */
  readonly through: 'options' | 'narrow' | 'steps'
  readonly upSince: readonly string[] | undefined
  /** Whether the session was locked again after the view, before groups were opened again. */
  readonly forgottenSince: boolean
  readonly openedSince: readonly Unlocking[]
  /** The ways in which another session, which differs in one part, has opened groups. */
  readonly neighbour: { readonly part: 'user' | 'tenant' | 'session'; readonly opened: readonly Unlocking[] }
  readonly policiesSince: readonly WrittenPolicy[] | undefined
  /** The index of the tool to explain and call, modulo the number of tools. */
  readonly asked: number
}

/** A gate, and its questions in order, so that an answer may affect later ones through a cache. */
export interface History {
  readonly tools: World['tools']
  readonly items: World['items']
  readonly groups: World['groups']
  readonly policies: World['policies']
  readonly forks: World['forks']
  readonly moments: readonly Moment[]
}

function momentArbitrary(ids: readonly string[], policy: fc.Arbitrary<WrittenPolicy>): fc.Arbitrary<Moment> {
  const since = fc.record({
    through: fc.constantFrom('options' as const, 'narrow' as const, 'steps' as const),
    upSince: fc.option(fc.subarray([...GROUPS]), { nil: undefined, freq: 2 }),
    forgottenSince: fc.constantFrom(false, false, false, true),
    neighbour: fc.record({
      part: fc.constantFrom('user' as const, 'tenant' as const, 'session' as const),
      opened: fc.array(triggerArbitrary(ids), { maxLength: 2 }),
    }),
    openedSince: fc.oneof(
      { weight: 2, arbitrary: fc.constant([]) },
      fc.array(triggerArbitrary(ids), { minLength: 1, maxLength: 2 }),
    ),
    policiesSince: fc.oneof({ weight: 24, arbitrary: fc.constant(undefined) }, fc.array(policy, { maxLength: 1 })),
    asked: fc.nat(6),
  })
  return fc.tuple(situationArbitrary(ids), since).map(([situation, more]) => ({ ...situation, ...more }))
}

/** Generates histories of `1` to `maxMoments` moments. */
export function historyArbitrary(maxMoments: number): fc.Arbitrary<History> {
  return groundArbitrary.chain(({ tools, items, ids, groups, policy, policies }) =>
    fc.record({
      tools: fc.constant(tools),
      items: fc.constant(items),
      groups: fc.constant(groups),
      policies,
      forks: forksArbitrary(policy),
      moments: fc.array(momentArbitrary(ids, policy), { minLength: 1, maxLength: maxMoments, size: 'max' }),
    }),
  )
}

/** Generates forks. Only the first may replace its base. Most worlds have none, and some have many. */
function forksArbitrary(policy: fc.Arbitrary<WrittenPolicy>): fc.Arbitrary<readonly WrittenFork[]> {
  const fork = (inherit: boolean) =>
    fc.record({ policies: fc.array(policy, { maxLength: 1 }), inherit: fc.constant(inherit) })
  const empty: WrittenFork = { policies: [], inherit: true }
  return fc
    .tuple(
      fc.oneof({ weight: 2, arbitrary: fc.constant([]) }, fc.tuple(fork(true)), fc.tuple(fork(false))),
      fc.oneof({ weight: 3, arbitrary: fc.constant([]) }, fc.array(fork(true), { maxLength: 2 })),
      fc.constantFrom(0, 0, 0, 0, 0, 0, 0, 50),
    )
    .map(([first, more, deep]) => [...first, ...more, ...Array.from({ length: deep }, () => empty)])
}

const someTools = fc.uniqueArray(toolArbitrary, { minLength: 1, maxLength: 7, selector: idOf })
const someItems = fc.oneof(
  fc.constant([]),
  fc.uniqueArray(itemArbitrary, { minLength: 1, maxLength: 5, selector: itemIdOf }),
)

const groundArbitrary = fc.tuple(someTools, someItems, fc.boolean()).chain(([tools, items, allowsItems]) => {
  const ids = idsOf({ tools, items })
  return groupsArbitrary(tools.map(idOf)).map((groups) => {
    const ofTools = selectorArbitrary(tools.map(idOf), Object.keys(groups))
    const ofItems = items.length === 0 ? ofTools : fc.constantFrom(...items.map(itemIdOf), ...ITEM_SELECTORS)
    const inAllow = fc.oneof({ weight: 3, arbitrary: ofTools }, { weight: 2, arbitrary: ofItems })
    const elsewhere =
      items.length === 0 ? inAllow : fc.oneof({ weight: 9, arbitrary: inAllow }, fc.constantFrom(...SERVER_SELECTORS))
    const any = policyArbitrary({ inAllow, elsewhere }, { tags: TAGS, names: NAMES })
    const policy = items.length > 0 && allowsItems ? any.map(allowingItems) : any
    // A gate without a policy has tools only. Its first policy may allow more, so adding this one widens.
    const policies = fc.array(policy, { minLength: items.length > 0 ? 1 : 0, maxLength: 3 })
    return { tools, items, ids, groups, policy, policies }
  })
})

/** A world, and further policies to add later. */
export interface WorldWithMore {
  readonly world: World
  readonly more: readonly WrittenPolicy[]
}

export const worldWithMore: fc.Arbitrary<WorldWithMore> = groundArbitrary.chain((fixed) => {
  const { tools, items, ids, groups, policy, policies } = fixed
  const ground = fc.record({
    tools: fc.constant(tools),
    items: fc.constant(items),
    groups: fc.constant(groups),
    policies,
    // These worlds exclude forks that replace a policy, because only such forks may widen.
    forks: forksArbitrary(policy).filter((forks) => forks.every(({ inherit }) => inherit)),
  })
  return fc.record({
    world: fc.tuple(ground, situationArbitrary(ids)).map(([written, situation]) => ({ ...written, ...situation })),
    more: fc.array(policy, { minLength: 1, maxLength: 2 }),
  })
})

export const worldArbitrary: fc.Arbitrary<World> = worldWithMore.map(({ world }) => world)

/** A gate of a world, with its tools' own records of their runs. */
export interface Opened {
  /** The last fork, or the gate itself. */
  readonly gate: Gate
  /** The gate under the forks. */
  readonly root: Gate
  /** The tools, and the other items. */
  readonly tools: readonly Tool[]
  readonly availability: MemoryAvailability
  /** The number of runs of each tool, by id, as the tools record them. */
  readonly ran: ReadonlyMap<string, number>
  /** Offers only these tools from now on. */
  offer(ids: readonly string[]): void
}

export function openWorld(world: World, options: GateOptions = {}): Opened {
  const opened = openGate(world, options)
  unlock(opened.gate, world.caller, world.opened)
  return opened
}

/** Returns the gate of a world in which no group has been opened yet. */
export function openGate(world: Omit<World, keyof Situation> & Partial<Situation>, options: GateOptions = {}): Opened {
  const ran = new Map<string, number>()
  const runningAs = (id: string) => () => {
    ran.set(id, (ran.get(id) ?? 0) + 1)
    return 'ran'
  }
  const tools = [
    ...world.tools.map((definition) => defineTool({ ...definition, execute: runningAs(idOf(definition)) })),
    ...world.items.map((item) => defineItem(item, runningAs(itemIdOf(item)))),
  ]
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
    Object.fromEntries(
      Object.keys(world.groups).map((name) => [name, { available: world.up?.includes(name) ?? true }]),
    ),
  )
  const root = createGate({
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
  const gate = world.forks.reduce(
    (above, { policies, inherit }) => above.fork({ policy: policies.map(toPolicy), inherit }),
    root,
  )
  return { gate, root, tools, availability, ran, offer }
}

function defineItem({ kind, called, ...rest }: WrittenItem, execute: () => unknown): Tool {
  if (kind === 'prompt') return definePrompt({ ...rest, name: called, execute })
  return kind === 'template'
    ? defineTemplate({ ...rest, uriTemplate: called })
    : defineResource({ ...rest, uri: called, execute })
}

export function viewOptionsOf({ visibility, activeTools }: World): {
  visibility?: readonly string[]
  activeTools?: readonly string[]
} {
  return { ...(visibility && { visibility }), ...(activeTools && { activeTools }) }
}

/** Whether `after` allows no more than `before`. */
export function isNoWider(after: OutcomeWord, before: OutcomeWord): boolean {
  return OUTCOMES.indexOf(after) >= OUTCOMES.indexOf(before)
}
