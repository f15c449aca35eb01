import { endsWithin, safely } from '@toolgate/values'
import { randomUUID } from 'node:crypto'
import { type Caller, createGate, type Gate, type GateOptions, type View } from '@toolgate/core'
import { createAvailability } from '@toolgate/core/groups'
import { memoryLock } from '@toolgate/core/stores'
import { ItemLists, ResourceOwners, ToolLists } from '@toolgate/mcp'
import type { RunRecord } from '../auth/made-run.ts'
import type { Rules, Settings } from '../auth/revision.ts'
import { whoDecides } from '../calls/deciders.ts'
import { unlockByCalls } from '../calls/sessions.ts'
import type { Heart, HeartCatalog, Host, HostOptions, Servers } from '../heart/heart.ts'
import { createWarnings } from '../heart/warnings.ts'
import { HeldCalls } from '../servers/asks/held-calls.ts'
import type { AskEntry } from '../servers/asks/server-asks.ts'
import { toApps } from '../servers/catalog/groups.ts'
import { toNameRules } from '../servers/catalog/names.ts'
import { type ConnectionRecord, Connections } from '../servers/connections/connections.ts'
import { Fleet } from '../servers/fleet.ts'
import { countCalls } from '../telemetry/call-counts.ts'
import { createTelemetry } from '../telemetry/create-telemetry.ts'
import type { Lifecycle } from '../util/lifecycle.ts'
import { type EarlyDoor, openLogins } from './door.ts'
import { GatewayRules } from './gate-rules.ts'
import { type OpenedStores, openStores } from './stores.ts'

/** The parts of the heart that exist before anything is opened. */
export type HeartServices = Pick<Heart, 'config' | 'revisions' | 'clock' | 'redact' | 'log' | 'onFault' | 'replica'> & {
  readonly lifecycle: Lifecycle
}

/** Options that come from outside the heart. */
interface HeartOptions extends Pick<Host, 'read' | 'readCertificate'> {
  readonly host: HostOptions
  readonly door: EarlyDoor
  /** An upper bound for how long a probe's result is cached. */
  readonly probeEveryMs: number | undefined
  /** Called when a session opens a group. */
  readonly onUnlocked: (caller: Caller) => void
  /** Called after the gate has closed, and before its stores and servers are closed. */
  readonly onGateClosed: () => Promise<void>
}

/** How long writing the records of aborted calls may take when the gateway stops. */
const RECORDS_MS = 500
/**
 * The deadline of a call, as a multiple of the longest server timeout. It ends a call that reports progress forever.
 */
const DEADLINE_FACTOR = 10

/** The heart, and a promise that resolves when every probe has answered once. */
export interface OpenedHeart {
  readonly heart: Heart
  readonly probed: Promise<void>
}

/** Opens the stores, and creates the gate and its servers without starting them. */
export async function openHeart(known: HeartServices, options: HeartOptions): Promise<OpenedHeart> {
  const { config, revisions, clock, log, onFault, lifecycle, replica } = known
  const { door, onUnlocked, probeEveryMs } = options
  const stores = await openStores(known, lifecycle)
  const record = (entry: AskEntry | ConnectionRecord | RunRecord) => recordBeside(entry, known, stores, gate)
  const servers = await openServers(known, stores, { door, record })
  const { fleet, connections, counts, held } = servers
  const rules = revisions.current
  const search = config.search ?? { offer: 'auto' }
  const own = new GatewayRules({ search, redact: known.redact, fleet, gate, onUnlocked, probeEveryMs }, rules)
  const availability = createAvailability(own.groups, { clock, onFault })
  lifecycle.onClose(() => availability.close())
  // Probes start first, so that the states of servers are known from the beginning.
  const probed = availability.start()
  const warnings = createWarnings({
    config: () => revisions.current,
    sources: () => fleet.sources,
    gate,
    clashes: () => lists.clashes,
    contested: () => owners.contested,
    log: (message) => log({ level: 'warn', message }),
  })
  const made: Gate = createGate({
    tools: own.ownTools,
    ...(own.opensByCalls ? { hooks: unlockByCalls(() => made.locks, onUnlocked) } : {}),
    sources: fleet.sources,
    groups: own.groups,
    apps: toApps(
      rules.apps,
      own.ownTools.map(({ id }) => id),
    ),
    ...stores.ofGate,
    ...(replica && { lease: replica.membership }),
    availability,
    admission: fleet.admission,
    connections,
    runs: door.runs,
    audit: stores.audit,
    clock,
    onFault,
    onWarning: warnings.logOfGate,
    telemetry: counts,
    redactor: known.redact,
    whoDecides: (approval) =>
      whoDecides(approval, {
        approvals: made.approvals,
        callers: [...revisions.current.callers, ...door.people.deciders(approval.tenant)],
        publicUrl: door.publicUrl,
      }),
    ...toGateOptions(config, rules),
    history: { ...stores.ofGate.history, ...config.history },
  })
  function gate(): Gate {
    return made
  }
  const nameRules = revisions.derive((now) => toNameRules({ ...config, servers: now.servers }))
  const lists = new ToolLists(made, search, (server, kind) => nameRules()(server, kind))
  made.catalog.subscribe(warnings.logNew)
  reviewHeld(made, held, revisions)
  lifecycle.onClose(options.onGateClosed)
  lifecycle.onClose(async () => {
    await endsWithin(made.close(), RECORDS_MS)
    // Aborted calls get their answer before the rest is closed.
    await lifecycle.closePort()
  })
  const withResources = revisions.derive((now) =>
    now.servers.filter(({ offers }) => offers.includes('resources')).map(({ name }) => name),
  )
  const owners = new ResourceOwners(made.catalog, withResources)
  const catalog: HeartCatalog = {
    lists,
    items: new ItemLists(lists, owners),
    owners,
    availability,
    ownIds: () => new Set(own.ownTools.map(({ id }) => id)),
    selectors: () => own.selectors,
    warnings,
  }
  const { read, readCertificate, host } = options
  const replace: Host['replace'] = (next, alongside) => own.replace(next, alongside, { availability, connections })
  await openCredentials(door, stores, record, known)
  const heart: Heart = {
    ...known,
    stores,
    gate: made,
    catalog,
    servers,
    door: openLogins(door, { ...known, stores, gate: made }),
    host: { ...host, read, readCertificate, replace },
  }
  return { heart, probed }
}

interface ServersOptions {
  readonly door: EarlyDoor
  readonly record: (entry: AskEntry | ConnectionRecord) => void
}

async function openServers(
  { config, revisions, clock, log, redact, onFault, lifecycle, replica }: HeartServices,
  { state, lock }: OpenedStores,
  { door, record }: ServersOptions,
): Promise<Servers> {
  const { calls, tracing } = await createTelemetry(onFault)
  const via = randomUUID()
  const held = new HeldCalls()
  const connections = new Connections({
    state,
    lock: lock ?? memoryLock({ clock }),
    clock,
    publicUrl: door.publicUrl,
    servers: () => revisions.current.servers,
    record,
    log,
    onFault,
  })
  lifecycle.onClose(() => connections.close())
  const fleet = new Fleet(config, revisions.current.servers, via, {
    homes: () => replica?.elsewhere()?.homes,
    clock,
    log,
    redact,
    tracing,
    connections,
    checkStart: replica?.checkStart,
    asks: { isOwn: door.isOwn, record, held },
  })
  connections.start()
  lifecycle.onClose(() => fleet.close())
  lifecycle.onClose(() => held.close())
  return { fleet, connections, held, counts: countCalls(clock, calls), tracing, via }
}

/** Opens keys, runs, people and the logouts of tokens over the stores, until the gateway closes. */
async function openCredentials(
  { keys, runs, people, tokenLogouts }: EarlyDoor,
  { state, people: store }: OpenedStores,
  record: (entry: RunRecord) => void,
  { lifecycle, revisions }: HeartServices,
): Promise<void> {
  await tokenLogouts?.open(state, (callers) =>
    revisions.end({ ended: new Set(callers), replaced: new Map(callers.map((caller) => [caller, undefined])) }),
  )
  lifecycle.onClose(() => tokenLogouts?.close())
  await keys.open(state)
  await runs.open(state, record)
  await people.open(store)
  lifecycle.onClose(() => people.close())
  lifecycle.onClose(() => runs.close())
  lifecycle.onClose(() => keys.close())
}

/** Ends calls that wait for their client if the caller may no longer make them. */
function reviewHeld(gate: Gate, held: HeldCalls, revisions: Heart['revisions']): void {
  gate.subscribe(() => void held.review(async ({ caller, tool }) => mayRun(await gate.view(caller), tool)))
  revisions.onEnded(({ ended }) => void held.review(async ({ caller }) => !ended.has(caller)))
}

function mayRun(view: View, tool: string): boolean {
  const { outcome } = view.explain(tool)
  return outcome === 'allow' || outcome === 'ask'
}

/** Records an event that is not a call. */
function recordBeside(
  entry: AskEntry | ConnectionRecord | RunRecord,
  { clock, onFault }: HeartServices,
  { audit }: OpenedStores,
  gate: () => Gate,
): void {
  const write = safely(() => {
    const { policyRevision, catalog } = gate()
    const revisions = { policy_revision: policyRevision, catalog_revision: catalog.revision }
    return audit.write({ ...entry, ...revisions, wallMs: clock.wallMs() })
  }, onFault)
  write()
}

/** Returns the options that have the same form in the file and in the gate. */
function toGateOptions(
  { calls, definitions, oauth, pins }: Settings,
  { aliases, grants, labels, limits, policy, servers }: Rules,
): Partial<GateOptions> {
  const { maxOutputChars, concurrency = [] } = calls ?? {}
  const longest = Math.max(...servers.map(({ callTimeoutMs }) => callTimeoutMs), 1000)
  return {
    policy,
    limits,
    concurrency,
    deadlineMs: calls?.deadlineMs ?? DEADLINE_FACTOR * longest,
    ...(aliases === undefined ? {} : { aliases }),
    ...(grants === undefined ? {} : { grants }),
    ...(labels === undefined ? {} : { labels }),
    ...(oauth === undefined ? {} : { stepUp: oauth.stepUp }),
    ...(pins === undefined ? {} : { pins }),
    ...(definitions === undefined ? {} : { definitions }),
    ...(maxOutputChars === undefined ? {} : { maxOutputChars }),
  }
}
