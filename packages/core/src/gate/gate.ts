import { randomUUID } from 'node:crypto'
import { memoryAudit } from '../audit/memory.ts'
import { type Apps, createApps } from './apps.ts'
import { type AppsInput, listApps, type ParsedApp, parseApps, selectorsOfApp, collectTools } from '../groups/app.ts'
import type { Caller } from '../caller.ts'
import { createPolicySnapshots } from '../decide/policy-snapshot.ts'
import { unknownTools, checkTool } from '../tools/toolset.ts'
import { type Approvals, createApprovals } from '../call/approvals.ts'
import { checkPorts } from '../call/check-ports.ts'
import type { CallPorts } from '../call/attempt.ts'
import { createDeadlines, MAX_TIMER_MS } from '../util/deadlines.ts'
import { GateClosedError } from '../call/closed.ts'
import { HaltedError } from '../call/halted.ts'
import { type HooksInput, parseHooks } from '../call/hooks.ts'
import { createLiveCalls } from '../call/live.ts'
import { type CapInput, createSlots, parseCaps } from '../call/slots.ts'
import { guardTelemetry } from '../telemetry/combine.ts'
import { createUses, type LimitInput, parseLimits, type UsesOf } from '../call/limits.ts'
import { createValidator } from '../call/validate.ts'
import { safely } from '../util/async.ts'
import { ConfigError } from '../errors.ts'
import { groupsOpenedBy } from '../decide/layers/groups.ts'
import { memoryApprovals } from '../memory/approvals.ts'
import { alwaysAvailable } from '../memory/availability.ts'
import { steadyClock, systemClock } from '../memory/clock.ts'
import { memoryCounters } from '../memory/counters.ts'
import { memoryState } from '../memory/state.ts'
import { createEmitter } from '../util/emitter.ts'
import { createAvailability } from '../groups/availability.ts'
import { createNeeds, type Need } from '../groups/needs.ts'
import { createLoads, type Loads, type LoadsOfGate } from '../groups/loads.ts'
import { createHalts, type Halt, type HaltRequest, type Halts, type HaltTarget } from '../state/halts.ts'
import {
  type DefinitionMode,
  parseDefinitionMode,
  parsePinRules,
  type PinMode,
  type PinRules,
} from '../state/pins/pin-rules.ts'
import { createPins, type Pins } from '../state/pins/pins.ts'
import { redactor, type Redactor } from '../redact/redact.ts'
import { createGateRecorder, type GateNotice, type GateRecorder, type Revisions } from '../audit/gate-events.ts'
import { lintAll, type LintWarning, selectorsOfGroups } from '../policy/lint.ts'
import { createNameWatch, emitWarning, type NameWatch, createSchemaWatch } from '../policy/watch.ts'
import { parsePolicies, type ParsedPolicy } from '../policy/parse.ts'
import type { Policies } from '../policy/policy.ts'
import { selectorsOfList, selectorsOfPolicies, type WrittenSelector } from '../policy/unknown-names.ts'
import { policyDocumentOf, createPolicyStack, type PolicyStack } from '../policy/document.ts'
import type {
  ApprovalStore,
  AuditSink,
  AvailabilitySource,
  Clock,
  CounterStore,
  MayApprove,
  StateStore,
  Telemetry,
  ValidateInput,
} from '../ports.ts'
import { type AliasesInput, parseAliases, selectorsOfAliases } from '../tools/aliases.ts'
import { type Catalog, createCatalog, type Source } from '../tools/catalog.ts'
import { noGroupIsNamed, checkJoined, type Group, type Groups, parseGroups, toGroupMap } from '../tools/groups.ts'
import type { REQUEST_TOOL_ID } from '../tools/own-tool.ts'
import { type NativeToolRecord, type ToolRecord, toolsOfRecord } from '../tools/record.ts'
import { matchesSelector, parseSelector } from '../tools/selector.ts'
import { withRequestTool } from '../search/request-tool.ts'
import { createUnlocks, type Unlocks } from '../groups/unlocks.ts'
import { checkObject, checkShape, shapeOf } from '../util/shape.ts'
import type { Tool } from '../tools/tool.ts'
import { createPreferences, type UserPreferences } from '../state/preferences.ts'
import type { View, ViewHost } from './view.ts'
import { rememberGate } from './view-of.ts'
import { createViews, type ViewOptions } from './views.ts'

export interface GateOptions {
  readonly tools?: Iterable<Tool>
  /** Dynamic sources, such as MCP servers. */
  readonly sources?: readonly Source[]
  readonly groups?: Readonly<Record<string, Group>> | ReadonlyMap<string, Group>
  /** Bundles of groups and of tools of their own, which `view` may be asked for. */
  readonly apps?: AppsInput
  /**
   * Other names of tools, for policies, groups, limits and the environment: `{ exec: 'bash' }`. They are never listed
   * and cannot be called.
   */
  readonly aliases?: AliasesInput
  /** All are met. None allows everything. */
  readonly policy?: Policies
  readonly limits?: LimitInput
  /** Asked before each call and told after it. Those of a fork are asked before these. */
  readonly hooks?: HooksInput
  /** How many calls may run at once: `browser:*:2`, or objects. */
  readonly concurrency?: CapInput
  /** Which conditional groups are available now. Default: the gate asks the groups' own probes. */
  readonly availability?: AvailabilitySource
  readonly counters?: CounterStore
  readonly approvals?: ApprovalStore
  /** Keeps halts, pins and preferences. Default: in memory. */
  readonly state?: StateStore
  /**
   * What happens when the definition of a tool changes: `suspend` takes it away until a person accepts it. Default `warn`.
   * `{ new: 'suspend' }` also holds tools that were not there before.
   */
  readonly pins?: PinMode | PinRules
  /** What happens to a tool whose definition has what no honest one has, such as invisible characters. Default `warn`. */
  readonly definitions?: DefinitionMode
  /** Takes secrets out of all that is kept or shown. Default: the built-in one. */
  readonly redactor?: Redactor
  /** Default: none. */
  readonly telemetry?: Telemetry
  /** Default: the newest 10,000 records, in memory. */
  readonly audit?: AuditSink
  readonly clock?: Clock
  readonly validateInput?: ValidateInput
  /** Default: the requester as a person, or anyone of the same tenant with the role `approver`. */
  readonly mayApprove?: MayApprove
  /** Ends an execution. Default 60,000 ms. */
  readonly deadlineMs?: number
  /** Ends the wait for a store, which then has failed. Default 5,000 ms. */
  readonly storeDeadlineMs?: number
  /** Ends the wait for a hook, which then has failed. Default 5,000 ms. */
  readonly hookDeadlineMs?: number
  /** Characters of JSON that an output may have; the rest is cut, and says so. Default 10,000,000. */
  readonly maxOutputChars?: number
  /** Ends the wait for a visibility function, which then has failed. Default 10,000 ms. */
  readonly visibilityDeadlineMs?: number
  /** Hears of faults that must not change an answer. Default: ignores them. */
  readonly onFault?: (error: unknown) => void
  /**
   * Called once for each name that no tool has, and for each keyword of a tool's schema that is not checked, as soon as
   * the tools are known. `gate.lint()` lists them too.
   * Default: `process.emitWarning`.
   */
  readonly onWarning?: (warning: LintWarning) => void
}

/** What a gate adds to its tools by itself, where a group opens by request. */
export type OwnToolName = typeof REQUEST_TOOL_ID

/** Tools by their ids: those names are a type, and any other is a compile error. */
export interface NamedGateOptions<Name extends string, Alias extends string = never> extends Omit<
  GateOptions,
  'tools' | 'sources' | 'policy' | 'aliases'
> {
  /** The key is the id of the tool, or names a definition that has no name. */
  readonly tools: ToolRecord<Name>
  readonly sources?: undefined
  readonly aliases?: Readonly<Record<Alias, string>> | ReadonlyMap<Alias, string>
  readonly policy?: Policies<NoInfer<Name | Alias | OwnToolName>>
}

/** Tools that an adapter brought in: the framework's own types of them are kept. */
export interface NativeGateOptions<Native, Alias extends string = never> extends Omit<
  NamedGateOptions<keyof Native & string, Alias>,
  'tools'
> {
  readonly tools: NativeToolRecord<Native>
}

/** Tools by their ids, beside sources whose names nobody knows beforehand: names are texts, checked at run time. */
export interface RecordGateOptions extends Omit<GateOptions, 'tools'> {
  readonly tools: ToolRecord
  readonly sources: readonly Source[]
}

/** The long-lived, shareable object: catalog, policy and stores. */
export interface Gate<Name extends string = string, Native = unknown> {
  /** For the compiler only: the framework's own tools that the gate was made of. */
  readonly '~native'?: Native
  readonly catalog: Catalog
  readonly policyRevision: number
  /**
   * Gives what a caller sees now. Equal callers share a view.
   *
   * @throws {ToolgateError} `caller_invalid`; `app_unknown`; `tool_unknown` for a name in `activeTools` that the catalog
   * has never seen
   */
  view(caller: Caller, options?: ViewOptions<Name>): Promise<View<Name>>
  /**
   * Replaces the policy, atomically: the next decision is by the new one, also in runs under way.
   *
   * @throws {ConfigError} and keeps the old one, if the new one cannot be used
   */
  setPolicy(policy: Policies<Name>): void
  /**
   * Gives a tighter gate over the same live catalog, groups, limits and stores. What tightens here later
   * tightens there too; nothing there reaches here.
   *
   * `inherit: false` replaces this gate's policy instead of adding to it: the one exception to "layers only
   * tighten", and only on a gate that is not itself a fork.
   *
   * @throws {ConfigError} for a policy that cannot be used, for `inherit: false` without a policy, and on a fork
   */
  fork(options: ForkOptions<Name>): Gate<Name, Native>
  /** Opening locked groups, for one session each. */
  readonly locks: Locks
  /** Groups whose tools are loaded at their first use. */
  readonly loads: Loads
  /**
   * The ids of a group's tools, visible or not.
   *
   * @throws {ConfigError} for an unknown group, naming the nearest one
   */
  membersOf(group: string): readonly string[]
  /**
   * What is allowed and probably not meant: selectors of policies, groups, limits, caps, apps and halts that name no tool,
   * tools that nobody can see, names that look alike.
   */
  lint(): readonly LintWarning[]
  readonly approvals: Approvals
  /**
   * Stops all that the target names, here at once and on every replica within a second: calls that come, that wait for
   * an approval or a slot, and those that run, which are aborted. Resolves when the state store has it.
   *
   * @throws {ConfigError} for a target or reason that cannot be used
   * @throws {ToolgateError} `state_unavailable` where the store did not take it: it is then in force here only
   */
  halt(request: HaltRequest): Promise<Halt>
  /** Ends a halt, named by its target or its id. @throws {ToolgateError} `halt_unknown`, `state_unavailable` */
  release(target: (HaltTarget | { readonly id: string }) & { readonly by?: string | undefined }): Promise<Halt>
  readonly halts: readonly Halt[]
  /** The remembered definitions of the tools. */
  readonly pins: Pick<Pins, 'list' | 'accept'>
  readonly apps: Apps
  /**
   * Lists what must work for the tools of an app to be available: servers, ports, URLs, commands, variables and
   * functions, each once, with its state as last checked. Without an app, what all groups need.
   *
   * @throws {ToolgateError} `app_unknown`
   */
  needsOf(app?: string): readonly Need[]
  /** What users have switched off for themselves. Whose they are is the host's to know. */
  readonly preferences: Pick<UserPreferences, 'get' | 'set'>
  /** Calls the listener at each change of policy, halts, pins, preferences and approvals. Gives the way to end it. */
  subscribe(listener: (notice: GateNotice) => void): () => void
  /** Resolves when no call is under way, through this gate and its forks. */
  idle(): Promise<void>
  /**
   * Ends the gate and its forks: nothing runs through them any more, what waits is refused and what runs is aborted.
   * Resolves when every call has left its terminal record, so an audit is closed after that. On a fork it does nothing.
   */
  close(): Promise<void>
}

/** What opens locked groups; each gives the groups that are open now and were not before. */
export interface Locks {
  /** The groups that a session must open, by name. */
  readonly groups: ReadonlyMap<string, Group>
  /** The host saw a real call of `request_tools`. */
  request(caller: Caller, group: string): readonly string[]
  /** Something happened that groups wait for. */
  event(caller: Caller, name: string): readonly string[]
  /** A search of this caller found these tools. */
  found(caller: Caller, tools: Iterable<string>): readonly string[]
  /** Locks everything again: the session has ended. */
  forget(caller: Caller): void
}

export interface ForkOptions<Name extends string = string> {
  readonly policy?: Policies<Name> | undefined
  /** Asked before those of the gate that is forked, which keep the last word. */
  readonly hooks?: HooksInput | undefined
  /** Default `true`. */
  readonly inherit?: boolean | undefined
}

const GATE = shapeOf<GateOptions>({
  tools: true,
  sources: true,
  groups: true,
  apps: true,
  policy: true,
  limits: true,
  hooks: true,
  concurrency: true,
  availability: true,
  counters: true,
  approvals: true,
  state: true,
  pins: true,
  definitions: true,
  redactor: true,
  telemetry: true,
  audit: true,
  clock: true,
  validateInput: true,
  mayApprove: true,
  deadlineMs: true,
  storeDeadlineMs: true,
  hookDeadlineMs: true,
  maxOutputChars: true,
  visibilityDeadlineMs: true,
  onFault: true,
  onWarning: true,
  aliases: true,
})
const FORK = shapeOf<ForkOptions>({ policy: true, hooks: true, inherit: true })

const DEFAULT_DEADLINE_MS = 60_000
const DEFAULT_VISIBILITY_DEADLINE_MS = 10_000
const DEFAULT_WAIT_MS = 5000
const DEFAULT_MAX_OUTPUT_CHARS = 10_000_000

/**
 * Gives a gate.
 *
 * @throws {ConfigError} for a tool, policy, group or limit that cannot be used
 * @example
 * const gate = createGate({ tools: [search, remove], policy: { deny: ['tag:danger'] } })
 * const view = await gate.view({ user: 'vera' })
 * const outcome = await view.call({ tool: 'search', input: { q: 'gates' } })
 */
export function createGate<Native, Alias extends string = never>(
  options: NativeGateOptions<Native, Alias>,
): Gate<(keyof Native & string) | OwnToolName, Native>
export function createGate<Name extends string, Alias extends string = never>(
  options: NamedGateOptions<Name, Alias>,
): Gate<Name | OwnToolName>
export function createGate(options?: GateOptions | RecordGateOptions): Gate
export function createGate(
  options: GateOptions | NamedGateOptions<string> | NativeGateOptions<object> | RecordGateOptions = {},
): Gate {
  checkShape('createGate', options, GATE)
  checkPorts(options)
  const clock = options.clock ? steadyClock(options.clock) : systemClock
  const onFault = safely(options.onFault)
  const definitions = new Map(toGroupMap(options.groups === undefined ? {} : options.groups))
  const aliases = parseAliases(options.aliases)
  const groups = parseGroups(definitions, aliases)
  const appsByName = listApps(options.apps)
  const tools = withRequestTool(collectTools(listTools(options.tools), appsByName), groups, () => gate)
  for (const tool of tools) checkJoined(tool, groups.selectors)
  const watched =
    options.availability === undefined && groups.probed
      ? createAvailability(definitions, { clock, onFault })
      : undefined
  const availability = options.availability ?? watched ?? alwaysAvailable
  const loads = createLoads({ groups, availability, clock, onFault })
  // A source may tell of a change while it is subscribed to.
  const reading = { ended: () => {} }
  const catalog = createCatalog({
    tools,
    sources: [...checkSources(options.sources), ...loads.sources],
    groups: groups.selectors,
    onRead: () => reading.ended(),
    onFault,
  })
  const warn = options.onWarning ? safely(options.onWarning, onFault) : emitWarning
  const names = createNameWatch(catalog, aliases, warn)
  const lookAtSchemas = createSchemaWatch(catalog, warn)
  names.checkAliases()
  reading.ended = () => {
    names.look()
    lookAtSchemas()
  }
  const read = (policy: Policies | undefined) => parsePolicies(policy, groups.selectors)
  const parse = (policy: Policies | undefined): readonly ParsedPolicy[] => {
    const parsed = read(policy)
    names.check(selectorsOfPolicies(parsed))
    return parsed
  }
  const apps = parseApps(appsByName, { groups, definitions, parsePolicy: read })
  const policies = read(options.policy)
  const limits = parseLimits(options.limits, groups.selectors)
  const caps = parseCaps(options.concurrency, groups.selectors)
  const written = [
    ...selectorsOfList(limits, 'limits'),
    ...selectorsOfList(caps, 'concurrency'),
    ...[...apps.values()].flatMap(selectorsOfApp),
  ]
  names.check([
    ...selectorsOfPolicies(policies),
    ...selectorsOfGroups(groups.selectors),
    ...selectorsOfAliases(aliases),
    ...written,
  ])
  lookAtSchemas()
  const audit = options.audit ?? memoryAudit({ redact: options.redactor })
  const state = options.state ?? memoryState({ clock })
  const events = createEmitter<[GateNotice]>(onFault)
  const live = createLiveCalls()
  const deadlines = createDeadlines(() => clock.monotonicMs())
  const storeDeadlineMs = checkDeadline('storeDeadlineMs', options.storeDeadlineMs ?? DEFAULT_WAIT_MS)
  const halts = createHalts({
    state,
    groups: groups.selectors,
    clock,
    onFault,
    deadlineMs: storeDeadlineMs,
    onHalted: () =>
      live.stopWhere(({ caller, tool }) => {
        const halt = halts.stopping(caller, tool)
        return halt && new HaltedError(halt.reason)
      }),
  })
  const preferences = createPreferences({
    state,
    groups: groups.selectors,
    onChanged: () => events.emit({ event: 'preferences-changed' }),
    onFault,
    deadlineMs: storeDeadlineMs,
  })
  const stack = createPolicyStack(policies)
  const revisions = () => revisionsOf(stack, catalog, groups)
  const recorder = createGateRecorder({ audit, clock, events, revisions, onFault })
  const pins = createPins({
    state,
    catalog,
    clock,
    ...parsePinRules(options.pins),
    check: parseDefinitionMode(options.definitions),
    onEvent: recorder.pinned,
    onFault,
  })
  const ports: CallPorts = {
    counters: options.counters ?? memoryCounters({ clock }),
    approvals: options.approvals ?? memoryApprovals(),
    audit,
    clock,
    deadlines,
    validate: options.validateInput ?? createValidator(),
    newCallId: randomUUID,
    hooks: parseHooks(options.hooks),
    slots: createSlots(caps),
    live,
    telemetry: options.telemetry && guardTelemetry([options.telemetry], onFault),
    redactor: options.redactor ?? redactor,
    deadlineMs: checkDeadline('deadlineMs', options.deadlineMs ?? DEFAULT_DEADLINE_MS),
    storeDeadlineMs,
    hookDeadlineMs: checkDeadline('hookDeadlineMs', options.hookDeadlineMs ?? DEFAULT_WAIT_MS),
    maxOutputChars: checkCount('maxOutputChars', options.maxOutputChars ?? DEFAULT_MAX_OUTPUT_CHARS),
    onApproval: recorder.requested,
    onFault,
  }
  const shared: Shared = {
    catalog,
    groups,
    definitions,
    availability,
    loads,
    unlocks: createUnlocks(),
    halts,
    pins,
    apps,
    preferences,
    recorder,
    subscribe: events.subscribe,
    usesOf: createUses(limits),
    names,
    written,
    parse,
    approvals: createApprovals({ approvals: ports.approvals, clock, onDecided: recorder.decided }, options.mayApprove),
    visibilityDeadlineMs: checkDeadline(
      'visibilityDeadlineMs',
      options.visibilityDeadlineMs ?? DEFAULT_VISIBILITY_DEADLINE_MS,
    ),
    closeGroups() {
      loads.close()
      watched?.close()
    },
  }
  void watched?.start()
  const gate = openGate(shared, ports, stack, { isFork: false, tightens: undefined })
  return gate
}

function revisionsOf(stack: PolicyStack, catalog: Catalog, { selectors }: Groups): Revisions {
  const { revision, parsed } = stack.current()
  return {
    policy_revision: revision,
    catalog_revision: catalog.revision,
    in_force: policyDocumentOf(parsed, selectors),
  }
}

/** What a gate and its forks have in common. */
interface Shared {
  readonly catalog: Catalog
  readonly groups: Groups
  readonly definitions: ReadonlyMap<string, Group>
  readonly availability: AvailabilitySource
  readonly loads: LoadsOfGate
  readonly unlocks: Unlocks
  readonly halts: Halts
  readonly pins: Pins
  readonly apps: ReadonlyMap<string, ParsedApp>
  readonly preferences: UserPreferences
  readonly recorder: GateRecorder
  readonly subscribe: Gate['subscribe']
  readonly usesOf: UsesOf
  readonly names: NameWatch
  /** The selectors of limits, caps and apps. */
  readonly written: readonly WrittenSelector[]
  readonly parse: (policy: Policies | undefined) => readonly ParsedPolicy[]
  readonly approvals: Approvals
  readonly visibilityDeadlineMs: number
  /** Ends what is asked and loaded of the groups. */
  readonly closeGroups: () => void
}

interface Lineage {
  readonly isFork: boolean
  /** The ports of the gate whose policy holds here too. */
  readonly tightens: CallPorts | undefined
}

function openGate(shared: Shared, ports: CallPorts, stack: PolicyStack, { isFork, tightens }: Lineage): Gate {
  const { catalog, groups, unlocks, halts, pins, availability, usesOf, parse, approvals, visibilityDeadlineMs } = shared
  const { recorder, subscribe, loads, preferences, names } = shared
  const world = { catalog, groups, availability, unlocks, halts, pins, preferences, policies: stack.current }
  const today = createPolicySnapshots(world)
  const { apps, hostOf } = createApps(shared.apps, today, world)
  const host: ViewHost = {
    ports,
    app: undefined,
    today,
    groups,
    usesOf,
    parsePolicy: parse,
    checkNames: (ids) => checkNames(ids, catalog),
  }
  const membersOf = (group: string): readonly string[] => {
    const selectors = groups.selectors.get(group)
    if (!selectors) throw new ConfigError('group', noGroupIsNamed([group], groups.selectors.keys()))
    const isMember = (tool: Tool) => selectors.some((selector) => matchesSelector(selector, tool, 'possible'))
    return catalog.snapshot().tools.flatMap((tool) => (isMember(tool) ? [tool.id] : []))
  }
  const openView = createViews(host, visibilityDeadlineMs, hostOf)
  const gate: Gate = {
    catalog,
    get policyRevision() {
      return stack.current().revision
    },
    view(caller, options) {
      const view = openView(caller, options)
      // Only one who was given a view has used anything.
      if (loads.unused()) void loads.usedBy(view, caller, { unlocks, app: shared.apps.get(options?.app ?? '')?.info })
      return view
    },
    setPolicy(policy) {
      if (policy === undefined)
        throw new ConfigError('setPolicy', 'needs a policy; [] is the one that allows everything')
      stack.replace(parse(policy))
      recorder.policyChanged(revisionsOf(stack, catalog, groups))
    },
    fork(options) {
      checkShape('fork', options, FORK)
      const { policy, hooks, inherit = true } = options
      if (typeof inherit !== 'boolean') throw new ConfigError('fork.inherit', 'must be true or false')
      if (!inherit && policy === undefined)
        throw new ConfigError(
          'fork.policy',
          'is needed with inherit: false, which would leave the fork without a policy',
        )
      if (!inherit && isFork) {
        throw new ConfigError('fork.inherit', 'only a gate that is not itself a fork can have its policy replaced')
      }
      const forkPorts = { ...ports, hooks: [...parseHooks(hooks), ...ports.hooks] }
      return openGate(shared, forkPorts, createPolicyStack(parse(policy), inherit ? stack : undefined), {
        isFork: true,
        tightens: inherit ? ports : undefined,
      })
    },
    locks: createLocks(groups, unlocks, membersOf, loads.use),
    loads,
    membersOf,
    lint: () =>
      lintAll(stack.current().parsed, groups.selectors, catalog.snapshot(), {
        written: [...shared.written, ...halts.selectors()],
        unlisted: catalog.unlisted,
      }),
    approvals,
    async halt(request) {
      if (!catalog.dynamic) checkTarget(request, groups, catalog)
      const { halt, stored } = halts.set(request)
      recorder.halted(halt)
      if (halt.target.tool !== undefined)
        names.check([{ path: 'halt.tool', selector: parseSelector(halt.target.tool, groups.selectors) }])
      await stored
      return halt
    },
    async release({ by, ...target }) {
      const { halt, stored } = halts.release(target, (released) => recorder.released(released, by))
      await stored
      return halt
    },
    get halts() {
      return halts.list()
    },
    pins,
    apps,
    needsOf: createNeeds({ ...shared, toolsOf: apps.toolsOf }),
    preferences,
    subscribe,
    idle: () => ports.live.idle(),
    async close() {
      if (isFork) return
      halts.close()
      pins.close()
      preferences.close()
      shared.closeGroups()
      catalog.close()
      await ports.live.close(new GateClosedError())
    },
  }
  rememberGate(gate, ports, tightens)
  return gate
}

function createLocks(
  groups: Groups,
  unlocks: Unlocks,
  membersOf: (group: string) => readonly string[],
  onOpened: (opened: readonly string[]) => void,
): Locks {
  const openBy = (caller: Caller, by: Parameters<typeof groupsOpenedBy>[1]) => {
    const before = unlocks.openFor(caller)
    const opened = groupsOpenedBy(groups, by, (group, tool) => membersOf(group).includes(tool)).filter(
      (name) => !before.has(name),
    )
    unlocks.open(caller, opened)
    if (caller.session === undefined) return []
    onOpened(opened)
    return opened
  }
  return {
    groups: groups.locked,
    request: (caller, group) => openBy(caller, { request: group }),
    event: (caller, name) => openBy(caller, { event: name }),
    found: (caller, tools) => openBy(caller, { found: tools }),
    forget: (caller) => unlocks.forget(caller),
  }
}

function listTools(tools: Iterable<Tool> | ToolRecord = []): readonly Tool[] {
  if (typeof tools !== 'object' || tools === null)
    throw new ConfigError('tools', 'must be a list of tools or an object')
  if (!isIterable(tools)) checkObject('tools', tools)
  return isIterable(tools) ? Array.from(tools, (tool, i) => checkTool(`tools[${i}]`, tool)) : toolsOfRecord(tools)
}

function checkSources(sources: readonly Source[] = []): readonly Source[] {
  if (!Array.isArray(sources)) throw new ConfigError('sources', 'must be a list of sources')
  for (const [i, source] of (sources as readonly Source[]).entries()) checkObject(`sources[${i}]`, source)
  return sources
}

function isIterable(tools: Iterable<Tool> | ToolRecord): tools is Iterable<Tool> {
  return Symbol.iterator in tools
}

function checkDeadline(name: string, deadlineMs: number): number {
  if (deadlineMs > 0 && deadlineMs <= MAX_TIMER_MS) return deadlineMs
  throw new ConfigError(name, `${deadlineMs} is not a number of milliseconds from 1 to ${MAX_TIMER_MS}`)
}

/** Whoever halts in a hurry must not be left thinking that a misspelt name is halted. */
function checkTarget({ tool }: HaltTarget, groups: Groups, catalog: Catalog): void {
  if (typeof tool !== 'string') return
  const selector = parseSelector(tool, groups.selectors)
  const snapshot = catalog.snapshot()
  if (snapshot.tools.some((one) => matchesSelector(selector, one, 'possible'))) return
  throw unknownTools([tool], snapshot.ids)
}

function checkCount(name: string, count: number): number {
  if (Number.isSafeInteger(count) && count >= 1) return count
  throw new ConfigError(name, `${count} is not a whole number above 0`)
}

function checkNames(names: readonly string[], catalog: Catalog): void {
  // `null`, as it comes from a request, would otherwise be no list, and narrow nothing.
  if (!Array.isArray(names)) throw new ConfigError('activeTools', 'must be a list of tool ids; [] for none')
  const wrong = names.findIndex((name) => typeof name !== 'string')
  if (wrong !== -1) throw new ConfigError(`activeTools[${wrong}]`, 'must be the id of a tool')
  const snapshot = catalog.snapshot()
  const unknown = names.filter((name) => !catalog.hasSeen(name))
  if (unknown.length > 0) throw unknownTools(unknown, snapshot.ids)
}
