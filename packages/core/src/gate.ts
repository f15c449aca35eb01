import { randomUUID } from 'node:crypto'
import { memoryAudit } from './audit/memory.ts'
import { type Caller, callerKey, defineCaller } from './caller.ts'
import { createBoundedCache } from './decide/cache.ts'
import { createEpochs, type Epoch } from './decide/epoch.ts'
import { rule, visibleBits } from './decide/ruling.ts'
import type { DoorPorts } from './door/attempt.ts'
import { createDeadlines, MAX_TIMER_MS } from './door/deadlines.ts'
import { indexLimits, type LimitIndex, type LimitInput, type LimitUseOf, parseLimits, usesOf } from './door/limits.ts'
import { createValidator } from './door/validate.ts'
import { nearestNames } from './decision/nearest.ts'
import { ConfigError, messageOf, ToolgateError, UnknownToolError } from './errors.ts'
import { failedVisibilityMarks, visibilityMarks } from './layers/visibility.ts'
import { memoryApprovals } from './memory/approvals.ts'
import { alwaysAvailable } from './memory/availability.ts'
import { systemClock } from './memory/clock.ts'
import { memoryCounters } from './memory/counters.ts'
import { checkSelectors, type LintWarning, lintPolicies } from './policy/lint.ts'
import { parsePolicies, type ParsedPolicy } from './policy/parse.ts'
import type { Policy } from './policy/policy.ts'
import type {
  Approval,
  ApprovalStatus,
  ApprovalStore,
  AuditSink,
  AvailabilitySource,
  Clock,
  CounterStore,
  MaybePromise,
  MayApprove,
  ValidateInput,
} from './ports.ts'
import { type Catalog, createCatalog, type Source } from './tools/catalog.ts'
import { type Group, parseGroups } from './tools/groups.ts'
import { membersOf } from './tools/bits.ts'
import { matchesSelector } from './tools/selector.ts'
import { isTool, type Tool } from './tools/tool.ts'
import { createView, type View, type ViewCeiling, type ViewHost } from './view.ts'

export interface GateOptions {
  readonly tools?: Iterable<Tool>
  /** Dynamic sources, such as MCP servers. */
  readonly sources?: readonly Source[]
  readonly groups?: Readonly<Record<string, Group>> | ReadonlyMap<string, Group>
  /** All are met. None allows everything. */
  readonly policy?: Policy | readonly Policy[]
  readonly limits?: LimitInput
  /** Which conditional groups are available now. Default: all of them. */
  readonly availability?: AvailabilitySource
  readonly counters?: CounterStore
  readonly approvals?: ApprovalStore
  /** Default: the newest 10,000 records, in memory. */
  readonly audit?: AuditSink
  readonly clock?: Clock
  readonly validateInput?: ValidateInput
  /** Default: the requester as a person, or anyone of the same tenant with the role `approver`. */
  readonly mayApprove?: MayApprove
  /** Ends an execution. Default 60,000 ms. */
  readonly deadlineMs?: number
  /** Ends the wait for a visibility function, which then has failed. Default 10,000 ms. */
  readonly visibilityDeadlineMs?: number
  /** Hears of faults that must not change an answer. Default: ignores them. */
  readonly onFault?: (error: unknown) => void
}

export interface ViewOptions {
  /** Narrows what this run sees: the tools or ids to show, or a function that gives them. */
  readonly visibility?: Visibility | undefined
  /** Ids. `[]` means none. */
  readonly activeTools?: readonly string[] | undefined
}

/**
 * Asked once per view, with the tools that policy and scopes permit, available now or not. What it names
 * beyond them is ignored; a throw, a nonsensical answer or none in time empties the view.
 */
export type Visibility =
  | Iterable<string | Tool>
  | ((context: { readonly tools: readonly Tool[]; readonly caller: Caller }) => MaybePromise<Iterable<string | Tool>>)

/** The long-lived, shareable object: catalog, policy and stores. */
export interface Gate {
  readonly catalog: Catalog
  readonly policyRevision: number
  /**
   * Gives what a caller sees now. Equal callers share a view.
   *
   * @throws {ToolgateError} `caller_invalid`; `tool_unknown` for a name in `activeTools` that the catalog has never seen
   */
  view(caller: Caller, options?: ViewOptions): Promise<View>
  /**
   * Replaces the policy, atomically: the next decision is by the new one, also in runs under way.
   *
   * @throws {ConfigError} and keeps the old one, if the new one cannot be used
   */
  setPolicy(policy: Policy | readonly Policy[]): void
  /** The ids of a group's tools, visible or not. */
  membersOf(group: string): readonly string[]
  /** What is probably not meant: selectors that name no tool. */
  lint(): readonly LintWarning[]
  readonly approvals: Approvals
  close(): void
}

export interface Approvals {
  get(id: string): Promise<Approval | undefined>
  list(filter?: { status?: ApprovalStatus; limit?: number }): Promise<readonly Approval[]>
  /** @throws {ToolgateError} `approval_unknown`, `approval_decided`, `approval_forbidden` */
  decide(
    approver: Caller,
    id: string,
    verdict: { decision: 'approve' | 'reject'; reason?: string | undefined },
  ): Promise<Approval>
}

const DEFAULT_DEADLINE_MS = 60_000
const DEFAULT_VISIBILITY_DEADLINE_MS = 10_000
const MAX_CALLERS = 10_000

/**
 * Gives a gate.
 *
 * @throws {ConfigError} for a policy, group or limit that cannot be used
 * @example
 * const gate = createGate({ tools: [search, remove], policy: { deny: ['tag:danger'] } })
 * const view = await gate.view({ user: 'vera' })
 * const outcome = await view.call({ tool: 'search', input: { q: 'gates' } })
 */
export function createGate(options: GateOptions = {}): Gate {
  const clock = options.clock ?? systemClock
  const groups = parseGroups(options.groups)
  const catalog = createCatalog({ tools: options.tools ?? [], sources: options.sources ?? [] })
  const parse = (policy: Policy | readonly Policy[] | undefined): readonly ParsedPolicy[] => {
    const parsed = parsePolicies(policy, groups.selectors)
    if (!catalog.dynamic) checkSelectors(parsed, catalog.snapshot())
    return parsed
  }
  let policies = { revision: 1, parsed: parse(options.policy) }
  const today = createEpochs({
    catalog,
    groups,
    availability: options.availability ?? alwaysAvailable,
    policies: () => policies,
  })
  const ports: DoorPorts = {
    counters: options.counters ?? memoryCounters({ clock }),
    approvals: options.approvals ?? memoryApprovals(),
    audit: options.audit ?? memoryAudit(),
    clock,
    deadlines: createDeadlines(() => clock.monotonicMs()),
    validate: options.validateInput ?? createValidator(),
    newCallId: randomUUID,
    deadlineMs: checkDeadline('deadlineMs', options.deadlineMs ?? DEFAULT_DEADLINE_MS),
    onFault: quiet(options.onFault),
  }
  const host: ViewHost = {
    ports,
    today,
    usesOf: createUses(parseLimits(options.limits, groups.selectors)),
    parsePolicy: parse,
    checkNames: (names) => checkNames(names, catalog),
  }
  const identify = createIdentities()
  const views = createViewCache(host)
  const visibilityDeadlineMs = checkDeadline(
    'visibilityDeadlineMs',
    options.visibilityDeadlineMs ?? DEFAULT_VISIBILITY_DEADLINE_MS,
  )

  return {
    catalog,
    get policyRevision() {
      return policies.revision
    },
    view(caller, viewOptions) {
      try {
        const identified = identify(caller)
        return viewOptions ? openView(host, identified, viewOptions, visibilityDeadlineMs) : views(identified)
      } catch (error) {
        return Promise.reject(error)
      }
    },
    setPolicy(policy) {
      policies = { revision: policies.revision + 1, parsed: parse(policy) }
    },
    membersOf(group) {
      const selectors = groups.selectors.get(group) ?? []
      const tools = catalog
        .snapshot()
        .tools.filter((tool) => selectors.some((selector) => matchesSelector(selector, tool, 'possible')))
      return tools.map(({ id }) => id)
    },
    lint: () => lintPolicies(policies.parsed, catalog.snapshot()),
    approvals: createApprovals(ports, options.mayApprove ?? mayApproveByDefault),
    close: () => catalog.close(),
  }
}

/** Gives one object for all equal callers, so that what is cached for one serves the others. */
function createIdentities(): (caller: Caller) => Caller {
  const byKey = createBoundedCache<string, Caller>(MAX_CALLERS)
  const known = new WeakMap<Caller, Caller>()
  return (caller) => {
    const same = known.get(caller)
    if (same) return same
    const defined = defineCaller(caller)
    const key = callerKey(defined)
    const first = byKey.get(key) ?? defined
    if (first === defined) byKey.set(key, defined)
    known.set(defined, first)
    return first
  }
}

/** Keeps the view of each caller for as long as nothing changes. */
function createViewCache(host: ViewHost): (caller: Caller) => Promise<View> {
  let epoch: Epoch | undefined
  let views = new WeakMap<Caller, Promise<View>>()
  return (caller) => {
    const today = host.today()
    if (today !== epoch) {
      epoch = today
      views = new WeakMap()
    }
    let view = views.get(caller)
    if (!view) {
      const { snapshot, policies } = today
      const ruling = today.ruling(caller)
      const ceiling = { caller, snapshot, policies, failure: undefined, marks: () => today.ceilingMarks(caller) }
      view = Promise.resolve(createView(host, ceiling, ruling))
      views.set(caller, view)
    }
    return view
  }
}

async function openView(
  host: ViewHost,
  caller: Caller,
  { visibility, activeTools }: ViewOptions,
  visibilityDeadlineMs: number,
): Promise<View> {
  const { snapshot, policies, ceilingMarks } = host.today()
  const marks = ceilingMarks(caller)
  const permitted: ViewCeiling = { caller, snapshot, policies, failure: undefined, marks: () => marks }
  const ceiling =
    visibility === undefined ? permitted : await applyVisibility(permitted, visibility, visibilityDeadlineMs)
  const view = createView(host, ceiling)
  return activeTools === undefined ? view : view.narrow({ activeTools })
}

async function applyVisibility(ceiling: ViewCeiling, visibility: Visibility, deadlineMs: number): Promise<ViewCeiling> {
  const { caller, snapshot } = ceiling
  const marks = ceiling.marks()
  const tools = () => membersOf(visibleBits(rule(snapshot, marks))).map((i) => snapshot.tools[i] as Tool)
  try {
    const shown =
      typeof visibility === 'function'
        ? await inTime(visibility({ tools: Object.freeze(tools()), caller }), deadlineMs)
        : visibility
    const hidden = visibilityMarks(snapshot, toIds(shown))
    return { ...ceiling, marks: () => [...marks, ...hidden] }
  } catch (error) {
    const failure = messageOf(error)
    const hidden = failedVisibilityMarks(snapshot, failure)
    return { ...ceiling, failure, marks: () => [...marks, ...hidden] }
  }
}

async function inTime<T>(answer: MaybePromise<T>, deadlineMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer in ${deadlineMs / 1000} s`)), deadlineMs)
  })
  try {
    return await Promise.race([answer, late])
  } finally {
    clearTimeout(timer)
  }
}

function toIds(named: Iterable<string | Tool>): ReadonlySet<string> {
  if (typeof named !== 'object' || named === null || typeof named[Symbol.iterator] !== 'function')
    throw new TypeError('visibility must give a list of tools or ids')
  return new Set(Array.from(named, toId))
}

function toId(named: string | Tool): string {
  if (typeof named === 'string') return named
  if (isTool(named)) return named.id
  throw new TypeError('visibility must name tools or ids')
}

/** Tells the host of a fault; that its listener fails must not change an answer either. */
function quiet(listener: GateOptions['onFault']): DoorPorts['onFault'] {
  return (error) => {
    try {
      listener?.(error)
    } catch {
      // The host's own fault, and there is nobody left to tell.
    }
  }
}

function checkDeadline(name: string, deadlineMs: number): number {
  if (deadlineMs > 0 && deadlineMs <= MAX_TIMER_MS) return deadlineMs
  throw new ConfigError(name, `${deadlineMs} is not a number of milliseconds from 1 to ${MAX_TIMER_MS}`)
}

function checkNames(names: readonly string[], catalog: Catalog): void {
  const snapshot = catalog.snapshot()
  const unknown = names.find((name) => !catalog.hasSeen(name))
  if (unknown !== undefined) throw new UnknownToolError(unknown, nearestNames(unknown, snapshot.ids, 3))
}

/** Gives the uses of each tool by each caller, computed once while the snapshot stays. */
function createUses(limits: ReturnType<typeof parseLimits>): ViewHost['usesOf'] {
  if (limits.length === 0) return () => []
  let index:
    | { epoch: Epoch; limits: LimitIndex; uses: WeakMap<Caller, (readonly LimitUseOf[] | undefined)[]> }
    | undefined
  return (epoch, at, caller) => {
    if (index?.epoch.snapshot !== epoch.snapshot)
      index = { epoch, limits: indexLimits(limits, epoch.snapshot), uses: new WeakMap() }
    let uses = index.uses.get(caller)
    if (!uses) index.uses.set(caller, (uses = []))
    return (uses[at] ??= usesOf(index.limits, at, epoch.snapshot.tools[at] as Tool, caller))
  }
}

function createApprovals({ approvals, clock }: DoorPorts, mayApprove: MayApprove): Approvals {
  return {
    get: async (id) => approvals.get(id, clock.wallMs()),
    list: async (filter = {}) => approvals.list(filter, clock.wallMs()),
    async decide(approver, id, { decision, reason }) {
      const approval = await approvals.get(id, clock.wallMs())
      if (!approval) throw new ToolgateError('approval_unknown', `No approval has the id "${id}".`)
      if (!mayApprove(defineCaller(approver), approval))
        throw new ToolgateError('approval_forbidden', 'You may not decide this approval.')
      return approvals.decide(id, { decision, reason, by: approver.user ?? 'unknown', atMs: clock.wallMs() })
    },
  }
}

function mayApproveByDefault(approver: Caller, approval: Approval): boolean {
  if (approver.tenant !== approval.tenant) return false
  const isRequester = approver.user !== undefined && approver.user === approval.user
  return isRequester || (approver.roles ?? []).includes('approver')
}
