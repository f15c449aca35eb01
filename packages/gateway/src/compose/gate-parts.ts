import type { LogLine } from '../model/log-line.ts'
import { randomUUID } from 'node:crypto'
import { ConfigError, createGate, type Gate, type GateOptions, type View } from '@toolgate/core'
import { createAvailability, parseGroups } from '@toolgate/core/groups'
import { endsWithin, safely } from '@toolgate/values'
import type { RunSource } from '@toolgate/core/call'
import { type Clock, memoryLock, memoryState, type StateStore } from '@toolgate/core/stores'
import { createMetaTools, ItemLists, ResourceOwners, ToolLists } from '@toolgate/mcp'
import { toApps, toGroups } from '../servers/catalog/groups.ts'
import { toNameRules } from '../servers/catalog/names.ts'
import type { GroupConfig } from '../config/config.ts'
import type { RunRecord } from '../auth/made-run.ts'
import { type ConnectionRecord, Connections } from '../servers/connections/connections.ts'
import { Fleet, type StagedFleet } from '../servers/fleet.ts'
import { ClauseHits } from '../admin/overview/clause-hits.ts'
import { HeldCalls } from '../servers/asks/held-calls.ts'
import type { AskEntry } from '../servers/asks/server-asks.ts'
import type { Lifecycle } from '../util/lifecycle.ts'
import { unlockByCalls } from '../calls/sessions.ts'
import type { GatewayRedactor } from '../config/redaction.ts'
import type { OpenedReplica } from '../replicas/open-replica.ts'
import type { ReplicaReport } from '../replicas/report.ts'
import type { Revisions, Rules, Settings } from '../auth/revision.ts'
import {
  type EvidenceProblem,
  findAuditProblems,
  openAudit,
  type OpenedAudit,
  openState,
  type SharedAuditDeps,
} from '../config/open-stores.ts'
import { type CallCounts, countCalls } from '../telemetry/call-counts.ts'
import { createTelemetry } from '../telemetry/create-telemetry.ts'
import type { FindTracing } from '../telemetry/tracing.ts'
import type { Upstream } from '../model/upstream.ts'
import { createWarnings, type Warnings } from './warnings.ts'

/** Shared by every part of a gateway. */
export interface GatewayBase {
  readonly config: Settings
  readonly revisions: Revisions
  readonly clock: Clock
  readonly redact: GatewayRedactor
  readonly log: (line: LogLine) => void
  readonly onFault: (error: unknown) => void
  readonly lifecycle: Lifecycle
  /** Absent where this gateway is alone. */
  readonly replica: OpenedReplica | undefined
  readonly report: ReplicaReport | undefined
}

/** The gate of a configuration, with its parts. */
export interface GateParts {
  readonly gate: Gate
  readonly lists: ToolLists
  readonly items: ItemLists
  readonly owners: ResourceOwners
  /** The ids of the gateway's own tools. */
  readonly metaIds: () => ReadonlySet<string>
  readonly selectors: () => ReturnType<typeof parseGroups>['selectors']
  readonly fleet: Fleet
  readonly connections: Connections
  /** The calls that wait for an answer of their client. */
  readonly held: HeldCalls
  readonly availability: ReturnType<typeof createAvailability>
  /** Resolves when every probe has answered once. */
  readonly probed: Promise<void>
  readonly warnings: Warnings
  readonly clauseHits: Pick<ClauseHits, 'read'>
  /**
   * Replaces the rules of the gate, its groups and its servers in one turn, with what `alongside` replaces.
   *
   * @throws {ConfigError} and changes nothing
   */
  replaceRules(next: Rules, alongside: () => void): ReturnType<StagedFleet['commit']>
  readonly audit: OpenedAudit
  readonly auditProblems: readonly EvidenceProblem[]
  readonly state: StateStore | undefined
  /** Absent where the state is in memory, or of replicas. @throws {ToolgateError} `state_unavailable` if nothing can be written now */
  readonly checkWritable: (() => void) | undefined
  readonly counts: CallCounts
  /** Records an event beside calls. */
  record(entry: RunRecord): void
  readonly tracing: FindTracing
  /** Identifies the requests of this gateway. */
  readonly via: string
}

const DEFAULT_TTL_MS = 10_000
/** How long the records of aborted calls may take when the gateway stops. */
const RECORDS_MS = 500
/** The deadline of a call, as a multiple of the longest server timeout. It ends calls whose progress never stops. */
const DEADLINE_FACTOR = 10

export interface GateHooks {
  /** The runs of callers whose token is for one. */
  readonly runs: RunSource
  /** Bounds how long a probe's answer is kept. */
  readonly probeEveryMs: number | undefined
  /** Called when a session opens a group. */
  readonly onUnlocked: () => void
  /** The origin that people reach the gateway by, if it is known. */
  readonly publicUrl: string | undefined
  /** Whether an origin is one of this gateway. */
  readonly isOwn: (origin: string) => boolean
}

/**
 * Opens the stores, and creates the gate and its servers without starting them.
 */
export async function openGate(
  base: GatewayBase,
  { probeEveryMs, onUnlocked, publicUrl, isOwn, runs }: GateHooks,
): Promise<GateParts> {
  const { config, revisions, clock, redact, log, onFault, lifecycle, replica } = base
  const rules = revisions.current
  const { audit, auditProblems, stores, lock, clauses, checkWritable } = await openStores(base)
  const { calls: traced, tracing } = await createTelemetry(onFault)
  const counts = countCalls(clock, traced)
  const via = randomUUID()
  const record = (entry: AskEntry | ConnectionRecord | RunRecord) =>
    recordBeside(entry, { audit, clock, onFault, gate: () => gate })
  const held = new HeldCalls()
  const connections = new Connections({
    state: stores.state ?? memoryState({ clock }),
    lock: lock ?? memoryLock({ clock }),
    clock,
    publicUrl,
    servers: () => revisions.current.servers,
    record,
    log,
    onFault,
  })
  lifecycle.onClose(() => connections.close())
  const ofServers = {
    homes: () => base.replica?.elsewhere()?.homes,
    clock,
    log,
    redact,
    tracing,
    connections,
    checkStart: replica?.checkStart,
    asks: { isOwn, record, held },
  }
  const fleet = new Fleet(config, rules.servers, via, ofServers)
  connections.start()
  lifecycle.onClose(() => fleet.close())
  lifecycle.onClose(() => held.close())
  const { reaper, admission } = fleet
  const search = config.search ?? { offer: 'auto' }
  const groupsOf = ({ groups: configured }: Rules, servers: readonly Upstream[]) =>
    toGroups(withTtl(configured, probeEveryMs), { servers, redactor: redact, reaper })
  const groups = groupsOf(rules, fleet.upstreams)
  const availability = createAvailability(groups, { clock, onFault })
  lifecycle.onClose(() => availability.close())
  // Started first, so that the states of servers are known from the beginning.
  const probed = availability.start()
  const parse = (all: ReturnType<typeof toGroups>, { aliases = {} }: Rules) =>
    parseGroups(all, new Map(Object.entries(aliases)))
  let parsedGroups = parse(groups, rules)
  let metaTools = createMetaTools({ groups: parsedGroups, search, gate: () => gate, onUnlocked })
  const metaIds = () => metaTools.map(({ id }) => id)
  const warnings = createWarnings({
    config: () => revisions.current,
    sources: () => fleet.sources,
    gate: () => gate,
    clashes: () => lists.clashes,
    contested: () => owners.contested,
    log: (message) => log({ level: 'warn', message }),
  })
  const unlocksByCalls = opensByCalls(parsedGroups)
  const gate: Gate = createGate({
    tools: metaTools,
    ...(unlocksByCalls ? { hooks: unlockByCalls(() => gate.locks, onUnlocked) } : {}),
    sources: fleet.sources,
    groups,
    apps: toApps(rules.apps, metaIds()),
    ...stores,
    ...(replica && { lease: replica.membership }),
    availability,
    admission,
    connections,
    runs,
    audit,
    clock,
    onFault,
    onWarning: warnings.logOfGate,
    telemetry: counts,
    redactor: redact,
    ...toGateOptions(config, rules),
    history: { ...stores.history, ...config.history },
  })
  // Closed after the gate, whose last calls count.
  const clauseHits = new ClauseHits({ gate, store: clauses, clock, onFault })
  lifecycle.onClose(() => clauseHits.close())
  const replaceRules: GateParts['replaceRules'] = (next, alongside) => {
    const staged = fleet.stage(next.servers)
    const nextGroups = groupsOf(next, staged.upstreams)
    const parsed = parse(nextGroups, next)
    if (opensByCalls(parsed) && !unlocksByCalls)
      throw new ConfigError('groups', 'that open by an event need a restart, where none did before')
    const own = createMetaTools({ groups: parsed, search, gate: () => gate, onUnlocked })
    const isSame = own.length === metaTools.length && own.every(({ id }, i) => id === metaTools[i]?.id)
    const tools = isSame ? metaTools : own
    const ids = tools.map(({ id }) => id)
    const { aliases, labels, limits, policy } = next
    let committed: ReturnType<typeof staged.commit> = { started: [], retired: [] }
    const swap = () => {
      committed = staged.commit()
      availability.replace(nextGroups)
      parsedGroups = parsed
      metaTools = tools
      alongside()
      connections.renew()
    }
    // A server of the next revision is open already, and has not started: nothing remains of it where a rule is wrong.
    const apps = toApps(next.apps, ids)
    const ofGate = { tools, sources: staged.sources, groups: nextGroups, apps, policy, limits }
    gate.setRules({ ...ofGate, ...(aliases && { aliases }), ...(labels && { labels }) }, swap)
    return committed
  }
  const nameRules = revisions.derive(({ servers }) => toNameRules({ ...config, servers }))
  const lists = new ToolLists(gate, search, (server, kind) => nameRules()(server, kind))
  gate.catalog.subscribe(warnings.logNew)
  gate.subscribe(() => void held.review(async ({ caller, tool }) => mayRun(await gate.view(caller), tool)))
  revisions.onEnded(({ ended }) => void held.review(async ({ caller }) => !ended.has(caller)))
  lifecycle.onClose(async () => {
    await endsWithin(gate.close(), RECORDS_MS)
    // Aborted calls are answered before the rest is closed.
    await lifecycle.closePort()
  })
  const withResources = revisions.derive(({ servers }) =>
    servers.filter(({ offers }) => offers.includes('resources')).map(({ name }) => name),
  )
  const owners = new ResourceOwners(gate.catalog, withResources)
  return {
    gate,
    lists,
    items: new ItemLists(lists, owners),
    owners,
    metaIds: () => new Set(metaIds()),
    selectors: () => parsedGroups.selectors,
    fleet,
    connections,
    held,
    availability,
    probed,
    replaceRules,
    clauseHits,
    warnings,
    audit,
    auditProblems,
    checkWritable,
    state: stores.state,
    counts,
    record,
    tracing,
    via,
  }
}

function opensByCalls({ locked }: ReturnType<typeof parseGroups>): boolean {
  return [...locked.values()].some(({ unlock }) => typeof unlock === 'object')
}

function mayRun(view: View, tool: string): boolean {
  const { outcome } = view.explain(tool)
  return outcome === 'allow' || outcome === 'ask'
}

/** Records an event beside calls. */
function recordBeside(
  entry: AskEntry | ConnectionRecord | RunRecord,
  { audit, clock, onFault, gate }: Pick<GatewayBase, 'clock' | 'onFault'> & { audit: OpenedAudit; gate: () => Gate },
): void {
  const write = safely(() => {
    const { policyRevision, catalog } = gate()
    const revisions = { policy_revision: policyRevision, catalog_revision: catalog.revision }
    return audit.write({ ...entry, ...revisions, wallMs: clock.wallMs() })
  }, onFault)
  write()
}

async function openStores({ config, redact, log, onFault, lifecycle, replica }: GatewayBase) {
  const isShared = config.audit.store === 'postgres'
  const onProblem: SharedAuditDeps['onProblem'] = (problem) =>
    problem === undefined
      ? log({ level: 'info', message: 'calls are recorded again' })
      : log({ level: 'error', message: 'calls are refused, as they cannot be recorded', detail: problem.message })
  const opening = isShared ? replica?.openAudit(config.audit, { redact, onFault, onProblem }) : undefined
  const audit: OpenedAudit = await (opening ?? openAudit(config.audit, { redact, onFault }))
  lifecycle.onClose(() => audit.close())
  const auditProblems = await findAuditProblems(config.audit)
  for (const { message } of auditProblems) log({ level: 'warn', message })
  if (replica)
    return {
      audit,
      auditProblems,
      stores: replica.stores,
      lock: replica.lock,
      clauses: replica.clauses,
      checkWritable: undefined,
    }
  const { close, lock, clauses, checkWritable, ...stores } = await openState(config.state, config.approvals)
  lifecycle.onClose(close)
  return { audit, auditProblems, stores, lock, clauses, checkWritable }
}

/** Returns the options that the file and the gate write in the same way. */
function toGateOptions(
  { calls, definitions, oauth, pins }: Settings,
  { aliases, labels, limits, policy, servers }: Rules,
): Partial<GateOptions> {
  const { maxOutputChars, concurrency = [] } = calls ?? {}
  const longest = Math.max(...servers.map(({ callTimeoutMs }) => callTimeoutMs), 1000)
  return {
    policy,
    limits,
    concurrency,
    deadlineMs: calls?.deadlineMs ?? DEADLINE_FACTOR * longest,
    ...(aliases === undefined ? {} : { aliases }),
    ...(labels === undefined ? {} : { labels }),
    ...(oauth === undefined ? {} : { stepUp: oauth.stepUp }),
    ...(pins === undefined ? {} : { pins }),
    ...(definitions === undefined ? {} : { definitions }),
    ...(maxOutputChars === undefined ? {} : { maxOutputChars }),
  }
}

function withTtl(groups: readonly GroupConfig[], mostMs = Number.POSITIVE_INFINITY): readonly GroupConfig[] {
  return groups.map((group) => (mostMs < (group.ttlMs ?? DEFAULT_TTL_MS) ? { ...group, ttlMs: mostMs } : group))
}
