import { parseDefinitionMode, parsePinRules } from '../state/pins/pin-rules.ts'
import { parseAliases, selectorsOfAliases } from '../tools/aliases.ts'
import { selectorsOfGroups } from '../policy/lint.ts'
import { selectorsOfList, selectorsOfPolicies, type WrittenSelector } from '../policy/unknown-names.ts'
import { randomUUID } from 'node:crypto'
import { memoryAudit } from '../audit/memory.ts'
import { listApps, type ParsedApp, parseApps, selectorsOfApp, collectTools } from '../groups/app.ts'
import { checkTool } from '../tools/toolset.ts'
import { type Approvals, createApprovals, mayApproveByDefault } from '../call/approvals.ts'
import { checkEdit } from '../call/editing.ts'
import { createGranting, type Grants } from '../call/granting.ts'
import { NotedBudgets } from '../call/budgets.ts'
import { checkPorts } from '../call/check-ports.ts'
import { type CallPorts, type Collaborators, storeInTime } from '../call/attempt.ts'
import { checksOf } from '../call/checks.ts'
import { COSTS_OF_CALLS } from '../call/settle.ts'
import { noteShadows } from '../call/shadows.ts'
import { createUnlisted, type Unlisted } from '../decide/unlisted.ts'
import {
  checkObject,
  checkShape,
  ConfigError,
  createDeadlines,
  createEmitter,
  type Emitter,
  MAX_TIMER_MS,
  Revision,
  safely,
} from '@toolgate/values'
import { HaltedError, LeaseEndedError } from '../call/outcome.ts'
import { parseHooks } from '../call/hooks.ts'
import { createLiveCalls } from '../call/lifetime.ts'
import { createSlots, parseCaps } from '../call/slots.ts'
import { guardTelemetry } from '../telemetry/combine.ts'
import { createUses, parseLimits, type UsesOf } from '../call/limits.ts'
import { createValidator } from '../call/validate.ts'
import { alwaysAvailable } from '../memory/availability.ts'
import { memoryApprovals } from '../memory/approvals.ts'
import { type ParsedGrantRules, parseGrantRules } from '../memory/grant-rules.ts'
import { memoryGrants } from '../memory/grants.ts'
import { steadyClock, systemClock } from '../memory/clock.ts'
import { memoryCounters } from '../memory/counters.ts'
import { memoryState } from '../memory/state.ts'
import { openAvailability } from '../groups/availability.ts'
import { GroupLoads } from '../groups/loads.ts'
import { createHalts, type Halts } from '../state/halts.ts'
import { Coverage } from '../decide/coverage.ts'
import { Histories, type HistoriesOptions } from '../history/histories.ts'
import { type ParsedLabels, parseLabels } from '../history/labels.ts'
import { memoryHistories } from '../memory/histories.ts'
import { createPins, type Pins } from '../state/pins/pins.ts'
import { createConnectionEffects } from '../decide/layers/held.ts'
import type { CallerHolds } from '../decide/policy-snapshot.ts'
import { redactor } from '@toolgate/values/redact'
import { createGateRecorder, type GateNotice, type GateRecorder, type RecordedRevisions } from '../audit/gate-events.ts'
import {
  checkFixedNames,
  createNameWatch,
  checkFixedConditions,
  createConditionWatch,
  emitWarning,
  type NameWatch,
  createSchemaWatch,
  type WatchedRules,
} from '../policy/watch.ts'
import { historyUse } from '../policy/history-use.ts'
import { lintLimits } from '../call/limit-lint.ts'
import { fieldUsesOfLimits } from '../policy/field-lint.ts'
import { parsePolicies, type ParsedPolicy } from '../policy/parse.ts'
import { partsOf } from '../policy/shadow.ts'
import type { Policies } from '../policy/policy.ts'
import { policyDocumentOf, createPolicyStack, type PolicyStack } from '../policy/document.ts'
import type { AvailabilitySource, Clock } from '../ports/ports.ts'
import { type Catalog, createCatalog, type Source } from '../tools/catalog.ts'
import { checkJoined, type Group, type Groups, parseGroups, toGroupMap } from '../tools/groups.ts'
import { type ToolRecord, toolsOfRecord } from '../tools/record.ts'
import { withRequestTool } from '../search/request-tool.ts'
import { createUnlocks, type Unlocks } from '../groups/unlocks.ts'
import type { Tool } from '../tools/tool.ts'
import { createPreferences, type UserPreferences } from '../state/preferences.ts'
import {
  type GateOptions,
  type NamedGateOptions,
  type NativeGateOptions,
  type RecordGateOptions,
  type GateRules,
  GATE,
  GATE_RULES,
  HISTORY,
  type HistoryOptions,
} from './options.ts'

const DEFAULT_DEADLINE_MS = 60_000
const DEFAULT_VISIBILITY_DEADLINE_MS = 10_000
const DEFAULT_WAIT_MS = 5000
const DEFAULT_MAX_OUTPUT_CHARS = 10_000_000

export type AnyOptions = GateOptions | NamedGateOptions<string> | NativeGateOptions<object> | RecordGateOptions

/** The parts of a gate. */
interface GateParts {
  readonly shared: Shared
  readonly ports: CallPorts
  readonly policies: PolicyStack
  /** Starts the probes of groups. */
  readonly start: () => void
}

/** The parts that a gate and its forks share. */
export interface Shared {
  /** Grows with every change that a decision may depend on. */
  readonly changes: Revision
  /** The current rules. Each replacement is a new object. */
  readonly rules: { readonly now: GateRuleSet }
  /**
   * Replaces the rules, with the policies of the gate's stack. Returns a function that tells the listeners of the catalog.
   *
   * @throws {ConfigError} and changes nothing
   */
  replaceRules(next: GateRules, stack: PolicyStack, alongside?: () => void): () => void
  readonly catalog: Catalog
  readonly availability: AvailabilitySource
  /** `availability`, if the host supplied it. */
  readonly hostAvailability: AvailabilitySource | undefined
  readonly loads: GroupLoads
  readonly unlocks: Unlocks
  readonly halts: Halts
  readonly pins: Pins
  readonly preferences: UserPreferences
  readonly connections: CallerHolds & { close(): void }
  readonly recorder: GateRecorder
  readonly subscribe: Emitter<[GateNotice]>['subscribe']
  readonly parse: (policy: Policies | undefined, root?: string) => readonly ParsedPolicy[]
  readonly approvals: Approvals
  readonly grants: Grants
  readonly visibilityDeadlineMs: number
  /** The scopes without which a tool is still listed. */
  readonly stepUp: readonly string[]
  /** Ends the probes and loads of groups. */
  readonly closeGroups: () => void
  readonly unlisted: Unlisted
  readonly unwatchLease: () => void
}

/** The rules of a gate beside its policies, which are replaced together. */
interface GateRuleSet extends WatchedRules {
  readonly groups: Groups
  readonly definitions: ReadonlyMap<string, Group>
  readonly apps: ReadonlyMap<string, ParsedApp>
  readonly usesOf: UsesOf
  readonly hasLimits: boolean
  readonly hasCaps: boolean
  readonly grants: ParsedGrantRules | undefined
  readonly labels: ParsedLabels
  readonly names: NameWatch
  /** The selectors of limits, caps and apps. */
  readonly written: readonly WrittenSelector[]
}

/** Checks the options of a gate and makes its parts. `gateOf` is called after the gate exists. */
export function createParts(options: AnyOptions, gateOf: GateOf): GateParts {
  checkShape('createGate', options, GATE)
  checkPorts(options)
  const basis: Basis = {
    changes: new Revision(),
    clock: options.clock ? steadyClock(options.clock) : systemClock,
    onFault: safely(options.onFault),
  }
  const tools = openTools(options, basis, gateOf)
  const state = openState(options, basis, tools)
  const { halts, preferences, connections, recorder, pins, events } = state
  const ports = createPorts(options, basis, tools, state)
  const { watched, loads, unlisted, policies, rules, parse: parseNamed, catalog, availability } = tools
  const parse: Shared['parse'] = (policy, root) => {
    const parsed = parseNamed(policy, root)
    followPolicies(ports, parsed)
    return parsed
  }
  followPolicies(ports, policiesOf(tools.parsed))
  const granting = createGranting(
    {
      grants: ports.grants,
      approvals: ports.approvals,
      clock: basis.clock,
      onGranted: recorder.granted,
      onRevoked: recorder.grantRevoked,
      onDecided: recorder.decided,
    },
    options.mayApprove ?? mayApproveByDefault,
  )
  const shared: Shared = {
    changes: basis.changes,
    rules,
    replaceRules: (next, stack, alongside) =>
      replaceRules(next, { options, gateOf, tools, ports, halts, stack, alongside }),
    catalog,
    availability,
    hostAvailability: options.availability,
    loads,
    unlocks: createUnlocks(basis),
    halts,
    pins,
    preferences,
    connections,
    recorder,
    subscribe: events.subscribe,
    parse,
    approvals: createApprovals(
      {
        approvals: ports.approvals,
        clock: basis.clock,
        onDecided: recorder.decided,
        onRefused: recorder.refused,
        granting,
        haltOf: (person, { tool }) => halts.ofPerson(person, catalog.snapshot().get(tool)),
        checkEdit: (approval, patch) => checkEdit(approval, patch, catalog.snapshot().get(approval.tool), ports),
      },
      options.mayApprove,
    ),
    grants: granting,
    visibilityDeadlineMs: checkDeadline(
      'visibilityDeadlineMs',
      options.visibilityDeadlineMs ?? DEFAULT_VISIBILITY_DEADLINE_MS,
    ),
    stepUp: checkStepUp(options.stepUp),
    unlisted,
    unwatchLease: options.lease?.onEnd(() => ports.live.stopWhere(() => new LeaseEndedError())) ?? (() => {}),
    closeGroups() {
      loads.close()
      watched?.close()
    },
  }
  return { shared, ports, policies, start: () => void watched?.start() }
}

/** Sets up what calls need for the policies. */
function followPolicies({ histories, coverage, current }: CallPorts, policies: readonly ParsedPolicy[]): void {
  histories.use(historyUse(policies))
  coverage.follow(policies)
  if (policies.some((policy) => partsOf(policy).shadow)) current.noteShadows = noteShadows
}

function checkStepUp(scopes: unknown = []): readonly string[] {
  if (!Array.isArray(scopes) || !scopes.every((scope) => typeof scope === 'string'))
    throw new ConfigError('stepUp', 'must be a list of scopes')
  return [...scopes]
}

interface Basis {
  readonly changes: Revision
  readonly clock: Clock
  readonly onFault: (error: unknown) => void
}

type GateOf = Parameters<typeof withRequestTool>[2]
type GateTools = ReturnType<typeof openTools>
type GateState = ReturnType<typeof openState>
type Definitions = ReturnType<typeof readDefinitions>
type ParsedRules = ReturnType<typeof parseRules>

/** The policies of the gate and of its apps. */
function policiesOf({ own, apps }: ParsedRules): readonly ParsedPolicy[] {
  return [...own, ...[...apps.values()].flatMap(({ policies }) => policies)]
}

/** Parses the options that define tools, groups and apps. */
function readDefinitions(options: AnyOptions | GateRules, gateOf: GateOf) {
  const definitions = new Map(toGroupMap(options.groups === undefined ? {} : options.groups))
  const aliases = parseAliases(options.aliases)
  const groups = parseGroups(definitions, aliases)
  const appsByName = listApps(options.apps)
  const tools = withRequestTool(collectTools(listTools(options.tools), appsByName), groups, gateOf)
  for (const tool of tools) checkJoined(tool, groups.selectors)
  return { definitions, aliases, groups, appsByName, tools, sources: checkSources(options.sources) }
}

/** Parses the policies, apps, limits and caps: all rules that name tools. */
function parseRules(
  options: AnyOptions | GateRules,
  concurrency: GateOptions['concurrency'],
  { definitions, aliases, groups, appsByName }: Definitions,
) {
  const parsePolicy = (policy: Policies | undefined, root?: string) => parsePolicies(policy, groups.selectors, root)
  const apps = parseApps(appsByName, { groups, definitions, parsePolicy })
  const own = parsePolicy(options.policy)
  const limits = parseLimits(options.limits, groups.selectors)
  const caps = parseCaps(concurrency, groups.selectors)
  const labels = parseLabels(options.labels, groups.selectors)
  const listed = [...selectorsOfList(limits, 'limits'), ...selectorsOfList(caps, 'concurrency'), ...labels.written]
  const written = [...listed, ...[...apps.values()].flatMap(selectorsOfApp)]
  const named = [
    ...selectorsOfPolicies(own),
    ...selectorsOfGroups(groups.selectors),
    ...selectorsOfAliases(aliases),
    ...written,
  ]
  return {
    apps,
    own,
    usesOf: createUses(limits),
    hasLimits: limits.length > 0,
    grants: parseGrantRules(options.grants),
    costs: fieldUsesOfLimits(limits),
    covered: lintLimits(limits),
    listed,
    caps,
    labels,
    written,
    named,
  }
}

function toRules(
  { groups, definitions }: Definitions,
  { apps, usesOf, hasLimits, grants, costs, covered, listed, caps, labels, written }: ParsedRules,
  names: NameWatch,
): GateRuleSet {
  const hasCaps = caps.length > 0
  return Object.freeze({
    groups,
    definitions,
    apps,
    usesOf,
    hasLimits,
    hasCaps,
    grants,
    labels,
    costs,
    covered,
    listed,
    written,
    names,
  })
}

/** Opens the catalog and the groups, and watches for unknown names and unchecked schema keywords. */
function openTools(options: AnyOptions, { changes, clock, onFault }: Basis, gateOf: GateOf) {
  const first = readDefinitions(options, gateOf)
  const { groups, definitions } = first
  const watched = options.availability
    ? undefined
    : openAvailability(definitions, { clock, onFault }, () => changes.bump())
  const availability = options.availability ?? watched ?? alwaysAvailable
  const loads = new GroupLoads({ groups, availability, clock, onFault })
  // A source may announce a change while it is subscribed to.
  const reading = { ended: () => {} }
  const catalog = createCatalog({
    changes,
    tools: first.tools,
    sources: [...first.sources, ...loads.sources],
    groups: groups.selectors,
    onRead: () => reading.ended(),
    onFault,
  })
  const unlisted = createUnlisted(catalog, onFault)
  const warn = options.onWarning ? safely(options.onWarning, onFault) : emitWarning
  const watchNames = ({ aliases }: Definitions) => createNameWatch(catalog, aliases, warn)
  const lookAtSchemas = createSchemaWatch(catalog, warn)
  const names = watchNames(first)
  names.checkAliases()
  const parsed = parseRules(options, options.concurrency, first)
  names.check(parsed.named)
  const warnOfConditions = createConditionWatch(catalog, warn)
  const lookAtConditions = (own: readonly ParsedPolicy[], all: WatchedRules) => {
    if (!catalog.dynamic) checkFixedConditions(catalog, own, all.labels, all.costs)
    warnOfConditions(own, all)
  }
  lookAtConditions(policiesOf(parsed), parsed)
  lookAtSchemas()
  const rules = { now: toRules(first, parsed, names) }
  reading.ended = () => {
    rules.now.names.look()
    warnOfConditions(policies.current().parsed, rules.now)
    lookAtSchemas()
  }
  const parse = (policy: Policies | undefined, root?: string): readonly ParsedPolicy[] => {
    const own = parsePolicies(policy, rules.now.groups.selectors, root)
    rules.now.names.check(selectorsOfPolicies(own))
    lookAtConditions(own, rules.now)
    return own
  }
  const policies = createPolicyStack({ own: parsed.own, changes })
  return {
    parsed,
    watched,
    availability,
    loads,
    catalog,
    unlisted,
    rules,
    watchNames,
    parse,
    policies,
    warnOfConditions,
  }
}

interface Replacing {
  readonly options: AnyOptions
  readonly gateOf: GateOf
  readonly tools: GateTools
  readonly ports: CallPorts
  readonly halts: Halts
  readonly stack: PolicyStack
  readonly alongside: (() => void) | undefined
}

/** Checks everything first, so that nothing can fail after `alongside`. */
function replaceRules(next: GateRules, replacing: Replacing): () => void {
  const { options, gateOf, tools, ports, halts, stack, alongside } = replacing
  const { catalog, loads, watched, watchNames, rules } = tools
  checkShape('setRules', next, GATE_RULES)
  const definitions = readDefinitions(next, gateOf)
  const { groups, aliases } = definitions
  if (loads.sources.length > 0 || groups.loaded.size > 0)
    throw new ConfigError('setRules.groups', 'cannot be replaced where some have a "load"')
  const parsed = parseRules(next, options.concurrency, definitions)
  const staged = catalog.stage({ tools: definitions.tools, sources: definitions.sources, groups: groups.selectors })
  if (!staged.dynamic) {
    checkFixedNames(staged, aliases, parsed.named)
    checkFixedConditions(staged, policiesOf(parsed), parsed.labels, parsed.costs)
  }
  alongside?.()
  watched?.replace(definitions.definitions)
  const announce = staged.commit()
  const names = watchNames(definitions)
  rules.now = toRules(definitions, parsed, names)
  ports.slots?.regroup(parsed.caps)
  followPolicies(ports, policiesOf(parsed))
  followRules(ports.current, options, rules.now)
  halts.regroup()
  stack.replace(parsed.own)
  names.checkAliases()
  names.check(parsed.named)
  tools.warnOfConditions(policiesOf(parsed), parsed)
  return announce
}

/** The halts, preferences, connections and pins, and the recorder of the gate's events. */
function openState(options: AnyOptions, { changes, clock, onFault }: Basis, { rules, catalog, policies }: GateTools) {
  const audit = options.audit ?? memoryAudit({ redact: options.redactor })
  const state = options.state ?? memoryState({ clock })
  const events = createEmitter<[GateNotice]>(onFault)
  const live = createLiveCalls()
  const storeDeadlineMs = checkDeadline('storeDeadlineMs', options.storeDeadlineMs ?? DEFAULT_WAIT_MS)
  const groups = () => rules.now.groups.selectors
  const ofStore = { changes, state, groups, onFault, deadlineMs: storeDeadlineMs }
  const halts = createHalts({
    ...ofStore,
    clock,
    onHalted: () =>
      live.stopWhere(({ caller, tool }) => {
        const halt = halts.stopping(caller, tool)
        return halt && new HaltedError(halt.reason)
      }),
  })
  const preferences = createPreferences({
    ...ofStore,
    onChanged: () => events.emit({ event: 'preferences-changed' }),
  })
  const connections = watchConnections(options.connections, () => {
    changes.bump()
    events.emit({ event: 'connections-changed' })
  })
  const revisions = () => revisionsOf(policies, catalog, rules.now.groups)
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
  pins.subscribe(() => changes.bump())
  return { audit, events, live, storeDeadlineMs, halts, preferences, connections, recorder, pins }
}

/** Hides tools of unconnected servers, and calls the listener after each change. */
function watchConnections(source: GateOptions['connections'], onChanged: () => void): Shared['connections'] {
  if (!source) return { now: () => () => () => [], close: () => {} }
  return {
    close: source.subscribe(onChanged),
    now: () => (snapshot) => {
      const effectsOf = createConnectionEffects(snapshot)
      return (caller) => effectsOf(source.missing(caller))
    },
  }
}

function createPorts(
  options: AnyOptions,
  { changes, clock, onFault }: Basis,
  { parsed, rules }: GateTools,
  { audit, live, storeDeadlineMs, recorder }: GateState,
): CallPorts {
  const { caps } = parsed
  const deadlines = createDeadlines(() => clock.monotonicMs())
  const histories = createHistories(options.history, {
    clock,
    labels: () => rules.now.labels,
    inTime: (answer) => storeInTime({ deadlines, clock, storeDeadlineMs }, answer),
    onActive: () => {
      current.history = histories
      followRules(current, options, rules.now)
      // Existing views do not know the histories of their runs.
      changes.bump()
      return live.hasBegun
    },
  })
  const counters = options.counters ?? memoryCounters({ clock })
  const current = followRules({ checks: NO_CHECKS }, options, rules.now)
  const ports: CallPorts = {
    current,
    histories,
    coverage: new Coverage(() => clock.wallMs()),
    runs: options.runs,
    counters,
    budgets: new NotedBudgets(counters, (answer) => storeInTime({ deadlines, clock, storeDeadlineMs }, answer)),
    approvals: options.approvals ?? memoryApprovals(),
    grants: { store: options.grantStore ?? memoryGrants(), rules: () => rules.now.grants },
    audit,
    clock,
    deadlines,
    validate: options.validateInput ?? createValidator(),
    newCallId: randomUUID,
    hooks: parseHooks(options.hooks),
    slots: caps.length > 0 ? createSlots(caps) : undefined,
    admission: options.admission,
    lease: options.lease,
    live,
    telemetry: options.telemetry && guardTelemetry([options.telemetry], onFault),
    redactor: options.redactor ?? redactor,
    deadlineMs: checkDeadline('deadlineMs', options.deadlineMs ?? DEFAULT_DEADLINE_MS),
    storeDeadlineMs,
    hookDeadlineMs: checkDeadline('hookDeadlineMs', options.hookDeadlineMs ?? DEFAULT_WAIT_MS),
    maxOutputChars: checkCount('maxOutputChars', options.maxOutputChars ?? DEFAULT_MAX_OUTPUT_CHARS),
    onApproval: recorder.requested,
    whoDecides: options.whoDecides,
    onFault,
  }
  return ports
}

const NO_CHECKS = checksOf({
  stepUp: false,
  limits: false,
  slots: false,
  admission: false,
  lease: false,
  history: false,
})

/** Sets up what calls need for the rules, and the checks that use it. */
function followRules(
  current: Collaborators,
  { admission, lease, stepUp = [] }: AnyOptions,
  { hasLimits, hasCaps, costs }: GateRuleSet,
): Collaborators {
  if (costs.length > 0) current.costs = COSTS_OF_CALLS
  current.checks = checksOf({
    stepUp: stepUp.length > 0,
    limits: hasLimits,
    slots: hasCaps,
    admission: admission !== undefined,
    lease: lease !== undefined,
    history: current.history !== undefined,
  })
  return current
}

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const KB = 1024

function createHistories(
  options: HistoryOptions = {},
  host: Pick<HistoriesOptions, 'clock' | 'labels' | 'inTime' | 'onActive'>,
): Histories {
  checkShape('history', options, HISTORY)
  const { store = memoryHistories(), calledMs = HOUR_MS, labelMs = DAY_MS, keepMs = DAY_MS } = options
  const duration = (name: string, ms: number) => checkCount(`history.${name}`, ms)
  return new Histories({
    ...host,
    store,
    lifetimes: { calledMs: duration('calledMs', calledMs), labelMs: duration('labelMs', labelMs) },
    // A history must last as long as its items count.
    keepMs: Math.max(duration('keepMs', keepMs), calledMs, labelMs),
    bounds: { maxBytes: checkCount('history.maxBytes', options.maxBytes ?? 64 * KB), origins: {} },
  })
}

/** Returns the revisions that the gate's records carry. */
export function revisionsOf(stack: PolicyStack, catalog: Catalog, { selectors }: Groups): RecordedRevisions {
  const { revision, parsed } = stack.current()
  return {
    policy_revision: revision,
    catalog_revision: catalog.revision,
    in_force: policyDocumentOf(parsed, selectors),
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

function checkCount(name: string, count: number): number {
  if (Number.isSafeInteger(count) && count >= 1) return count
  throw new ConfigError(name, `${count} is not a whole number above 0`)
}
