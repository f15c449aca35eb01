import { parsePinRules } from '../state/pins/pin-rules.ts'
import { selectorsOfAliases } from '../tools/aliases.ts'
import { selectorsOfGroups } from '../policy/lint.ts'
import { selectorsOfList } from '../policy/unknown-names.ts'
import { randomUUID } from 'node:crypto'
import { memoryAudit } from '../audit/memory.ts'
import { listApps, type ParsedApp, parseApps, selectorsOfApp, collectTools } from '../groups/app.ts'
import { checkTool } from '../tools/toolset.ts'
import { type Approvals, createApprovals } from '../call/approvals.ts'
import { checkPorts } from '../call/check-ports.ts'
import type { CallPorts } from '../call/attempt.ts'
import { checksOf } from '../call/checks.ts'
import { createUnlisted, type Unlisted } from '../decide/unlisted.ts'
import { createDeadlines, MAX_TIMER_MS } from '../util/deadlines.ts'
import { HaltedError } from '../call/outcome.ts'
import { parseHooks } from '../call/hooks.ts'
import { createLiveCalls } from '../call/lifetime.ts'
import { createSlots, parseCaps } from '../call/slots.ts'
import { guardTelemetry } from '../telemetry/combine.ts'
import { createUses, parseLimits, type UsesOf } from '../call/limits.ts'
import { createValidator } from '../call/validate.ts'
import { safely } from '../util/async.ts'
import { ConfigError } from '../util/errors.ts'
import { memoryApprovals } from '../memory/approvals.ts'
import { alwaysAvailable } from '../memory/availability.ts'
import { steadyClock, systemClock } from '../memory/clock.ts'
import { memoryCounters } from '../memory/counters.ts'
import { memoryState } from '../memory/state.ts'
import { createEmitter, type Emitter } from '../util/emitter.ts'
import { createAvailability } from '../groups/availability.ts'
import { GroupLoads } from '../groups/loads.ts'
import { createHalts, type Halts } from '../state/halts.ts'
import { parseDefinitionMode } from '../state/pins/pin-rules.ts'
import { createPins, type Pins } from '../state/pins/pins.ts'
import { redactor } from '../redact/redact.ts'
import { createGateRecorder, type GateNotice, type GateRecorder, type Revisions } from '../audit/gate-events.ts'
import { createNameWatch, emitWarning, type NameWatch, createSchemaWatch } from '../policy/watch.ts'
import { parsePolicies, type ParsedPolicy } from '../policy/parse.ts'
import type { Policies } from '../policy/policy.ts'
import { selectorsOfPolicies, type WrittenSelector } from '../policy/unknown-names.ts'
import { policyDocumentOf, createPolicyStack, type PolicyStack } from '../policy/document.ts'
import type { AvailabilitySource, Clock } from '../ports/ports.ts'
import { parseAliases } from '../tools/aliases.ts'
import { type Catalog, createCatalog, type Source } from '../tools/catalog.ts'
import { checkJoined, type Group, type Groups, parseGroups, toGroupMap } from '../tools/groups.ts'
import { type ToolRecord, toolsOfRecord } from '../tools/record.ts'
import { withRequestTool } from '../search/request-tool.ts'
import { createUnlocks, type Unlocks } from '../groups/unlocks.ts'
import { checkObject, checkShape } from '../util/shape.ts'
import { Revision } from '../util/revision.ts'
import type { Tool } from '../tools/tool.ts'
import { createPreferences, type UserPreferences } from '../state/preferences.ts'
import {
  type GateOptions,
  type NamedGateOptions,
  type NativeGateOptions,
  type RecordGateOptions,
  GATE,
} from './options.ts'

const DEFAULT_DEADLINE_MS = 60_000
const DEFAULT_VISIBILITY_DEADLINE_MS = 10_000
const DEFAULT_WAIT_MS = 5000
const DEFAULT_MAX_OUTPUT_CHARS = 10_000_000

type AnyOptions = GateOptions | NamedGateOptions<string> | NativeGateOptions<object> | RecordGateOptions

/** The parts of a gate. */
export interface GateParts {
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
  readonly catalog: Catalog
  readonly groups: Groups
  readonly definitions: ReadonlyMap<string, Group>
  readonly availability: AvailabilitySource
  readonly loads: GroupLoads
  readonly unlocks: Unlocks
  readonly halts: Halts
  readonly pins: Pins
  readonly apps: ReadonlyMap<string, ParsedApp>
  readonly preferences: UserPreferences
  readonly recorder: GateRecorder
  readonly subscribe: Emitter<[GateNotice]>['subscribe']
  readonly usesOf: UsesOf
  readonly names: NameWatch
  /** The selectors of limits, caps and apps. */
  readonly written: readonly WrittenSelector[]
  readonly parse: (policy: Policies | undefined) => readonly ParsedPolicy[]
  readonly approvals: Approvals
  readonly visibilityDeadlineMs: number
  /** Ends the probes and loads of groups. */
  readonly closeGroups: () => void
  readonly unlisted: Unlisted
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
  const tools = readTools(options, basis, gateOf)
  const rules = readRules(options, basis, tools)
  const state = openState(options, basis, tools, rules)
  const { halts, preferences, recorder, pins, events } = state
  const ports = createPorts(options, basis, rules, state)
  const { watched, loads, unlisted } = tools
  const { apps, usesOf, written, parse } = rules
  const { catalog, groups, definitions, availability, names } = tools
  const shared: Shared = {
    changes: basis.changes,
    catalog,
    groups,
    definitions,
    availability,
    loads,
    unlocks: createUnlocks(basis),
    halts,
    pins,
    apps,
    preferences,
    recorder,
    subscribe: events.subscribe,
    usesOf,
    names,
    written,
    parse,
    approvals: createApprovals(
      { approvals: ports.approvals, clock: basis.clock, onDecided: recorder.decided },
      options.mayApprove,
    ),
    visibilityDeadlineMs: checkDeadline(
      'visibilityDeadlineMs',
      options.visibilityDeadlineMs ?? DEFAULT_VISIBILITY_DEADLINE_MS,
    ),
    unlisted,
    closeGroups() {
      loads.close()
      watched?.close()
    },
  }
  return { shared, ports, policies: rules.policies, start: () => void watched?.start() }
}

interface Basis {
  readonly changes: Revision
  readonly clock: Clock
  readonly onFault: (error: unknown) => void
}

type GateOf = Parameters<typeof withRequestTool>[2]
type GateTools = ReturnType<typeof readTools>
type GateRules = ReturnType<typeof readRules>
type GateState = ReturnType<typeof openState>

/** The groups, the catalog, and the watches for unknown names and schemas. */
function readTools(options: AnyOptions, { changes, clock, onFault }: Basis, gateOf: GateOf) {
  const definitions = new Map(toGroupMap(options.groups === undefined ? {} : options.groups))
  const aliases = parseAliases(options.aliases)
  const groups = parseGroups(definitions, aliases)
  const appsByName = listApps(options.apps)
  const tools = withRequestTool(collectTools(listTools(options.tools), appsByName), groups, gateOf)
  for (const tool of tools) checkJoined(tool, groups.selectors)
  const watched =
    options.availability === undefined && groups.probed
      ? createAvailability(definitions, { clock, onFault })
      : undefined
  const availability = options.availability ?? watched ?? alwaysAvailable
  const loads = new GroupLoads({ groups, availability, clock, onFault })
  // A source may announce a change while it is subscribed to.
  const reading = { ended: () => {} }
  const sources = checkSources(options.sources)
  const catalog = createCatalog({
    changes,
    tools,
    sources: [...sources, ...loads.sources],
    groups: groups.selectors,
    onRead: () => reading.ended(),
    onFault,
  })
  const unlisted = createUnlisted(catalog, sources, onFault)
  const warn = options.onWarning ? safely(options.onWarning, onFault) : emitWarning
  const names = createNameWatch(catalog, aliases, warn)
  const lookAtSchemas = createSchemaWatch(catalog, warn)
  names.checkAliases()
  reading.ended = () => {
    names.look()
    lookAtSchemas()
  }
  return {
    definitions,
    aliases,
    groups,
    appsByName,
    watched,
    availability,
    loads,
    catalog,
    unlisted,
    names,
    lookAtSchemas,
  }
}

/** The policies, apps, limits and caps: everything that names tools. */
function readRules(
  options: AnyOptions,
  { changes }: Basis,
  { definitions, aliases, groups, appsByName, names, lookAtSchemas }: GateTools,
) {
  const read = (policy: Policies | undefined) => parsePolicies(policy, groups.selectors)
  const parse = (policy: Policies | undefined): readonly ParsedPolicy[] => {
    const parsed = read(policy)
    names.check(selectorsOfPolicies(parsed))
    return parsed
  }
  const apps = parseApps(appsByName, { groups, definitions, parsePolicy: read })
  const own = read(options.policy)
  const limits = parseLimits(options.limits, groups.selectors)
  const caps = parseCaps(options.concurrency, groups.selectors)
  const written = [
    ...selectorsOfList(limits, 'limits'),
    ...selectorsOfList(caps, 'concurrency'),
    ...[...apps.values()].flatMap(selectorsOfApp),
  ]
  names.check([
    ...selectorsOfPolicies(own),
    ...selectorsOfGroups(groups.selectors),
    ...selectorsOfAliases(aliases),
    ...written,
  ])
  lookAtSchemas()
  const policies = createPolicyStack(own, changes)
  return { apps, policies, usesOf: createUses(limits), hasLimits: limits.length > 0, caps, written, parse }
}

/** The halts, preferences and pins, and the recorder of the gate's events. */
function openState(
  options: AnyOptions,
  { changes, clock, onFault }: Basis,
  { groups, catalog }: GateTools,
  { policies }: GateRules,
) {
  const audit = options.audit ?? memoryAudit({ redact: options.redactor })
  const state = options.state ?? memoryState({ clock })
  const events = createEmitter<[GateNotice]>(onFault)
  const live = createLiveCalls()
  const storeDeadlineMs = checkDeadline('storeDeadlineMs', options.storeDeadlineMs ?? DEFAULT_WAIT_MS)
  const ofStore = { changes, state, groups: groups.selectors, onFault, deadlineMs: storeDeadlineMs }
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
  const revisions = () => revisionsOf(policies, catalog, groups)
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
  return { audit, events, live, storeDeadlineMs, halts, preferences, recorder, pins }
}

function createPorts(
  options: AnyOptions,
  { clock, onFault }: Basis,
  { caps, hasLimits }: GateRules,
  { audit, live, storeDeadlineMs, recorder }: GateState,
): CallPorts {
  return {
    checks: checksOf({
      limits: hasLimits,
      slots: caps.length > 0,
      admission: options.admission !== undefined,
    }),
    counters: options.counters ?? memoryCounters({ clock }),
    approvals: options.approvals ?? memoryApprovals(),
    audit,
    clock,
    deadlines: createDeadlines(() => clock.monotonicMs()),
    validate: options.validateInput ?? createValidator(),
    newCallId: randomUUID,
    hooks: parseHooks(options.hooks),
    slots: caps.length > 0 ? createSlots(caps) : undefined,
    admission: options.admission,
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
}

/** The revisions that a record of the gate has. */
export function revisionsOf(stack: PolicyStack, catalog: Catalog, { selectors }: Groups): Revisions {
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
