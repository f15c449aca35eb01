import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { callerAt, toResource } from '../auth/credential.ts'
import { type Caller, ConfigError, type Gate, type Tool, type View } from '@toolgate/core'
import { endsWithin } from '@toolgate/values'
import { type HaltTarget, kindOfId } from '@toolgate/core/internal'
import { parseLimits } from '@toolgate/core/call'
import { memoryState } from '@toolgate/core/stores'
import { matchesSelector } from '@toolgate/core/toolset'
import type { Api } from '../admin/http/api.ts'
import type { ApiDeps } from '../admin/http/deps.ts'
import { createNamedCallers } from '../admin/http/callers.ts'
import { createHealth } from '../admin/http/health.ts'
import { toolReach } from '../admin/http/routes/halts.ts'
import { createGroupRows, createNeedRows, toAppRows } from '../admin/http/rows.ts'
import type { GroupRow, ServerRow } from '../model/rows.ts'
import { createFailedLogins, type FailedLogins } from '../auth/failed-logins.ts'
import { FleetFailures } from '../auth/fleet-failures.ts'
import type { OpenedAuthenticator } from '../auth/open-authenticator.ts'
import type { OriginRules } from '../auth/origin.ts'
import type { Runs } from '../auth/runs.ts'
import { serverGroupName } from '../servers/catalog/groups.ts'
import type { GatewayConfig } from '../config/config.ts'
import type { GateParts, GatewayBase } from './gate-parts.ts'
import type { Fleet } from '../servers/fleet.ts'
import { VERSION } from '../files.ts'
import { type ClientAddresses, createClientAddresses } from '../util/client-address.ts'
import type { HttpDeps } from '../edge/server.ts'
import { createListCosts } from '../admin/http/list-costs.ts'
import { FleetGroups } from '../admin/live/fleet-groups.ts'
import { createGroupWatch, type GroupWatch } from '../admin/live/group-watch.ts'
import type { LiveSocket } from '../admin/live/live-socket.ts'
import { createProgramReader } from '../servers/catalog/program.ts'
import { type ServerIdentities, watchIdentities } from '../servers/catalog/server-identity.ts'
import { recordStateChanges } from '../admin/live/state-changes.ts'
import { once } from '../util/lifecycle.ts'
import { ChangeStreams } from '../mcp/change-streams.ts'
import { McpEndpoints } from '../mcp/endpoint.ts'
import { ApiPlace } from '../edge/api-place.ts'
import { needsInstance } from '../replicas/needs-instance.ts'
import { Comparisons } from '../admin/comparisons/comparisons.ts'
import { Instructions } from '../servers/catalog/instructions.ts'
import { HeldStreams } from '../mcp/held-streams.ts'
import { KeepAlive } from '../mcp/keep-alive.ts'
import type { ServerCapabilities } from '../mcp/methods.ts'
import { Questions } from '../mcp/questions.ts'
import { Sessions } from '../calls/sessions.ts'
import { redactApprovals } from '../config/redaction.ts'
import type { OpenedReplica } from '../replicas/open-replica.ts'
import type { Rules } from '../auth/revision.ts'
import { approvalUrl } from '../calls/approval-doors.ts'
import { heldIn } from '../servers/asks/held-calls.ts'
import { createRounds } from '../calls/rounds.ts'
import { isTaskState } from '../servers/asks/upstream-tasks.ts'
import { createTasks, type GatewayTasks } from '../calls/tasks/create-tasks.ts'
import type { TaskOwner } from '../calls/tasks/task.ts'
import { createMetricsEndpoint } from '../admin/metrics/metrics-endpoint.ts'
import { createMetrics } from '../admin/metrics/metrics.ts'
import { ownerOf as instanceOwnerOf } from '../model/owner.ts'
import { type Offer, OFFERS } from '../model/upstream.ts'

/** The credentials and host names that the gateway accepts. */
export interface Entrance extends OpenedAuthenticator {
  readonly origins: OriginRules
  readonly port: number
  /** The origin that people reach the gateway by, if it is known. */
  readonly publicUrl: string | undefined
  readonly runs: Pick<Runs, 'load'>
}

const LIST_TTL_MS = 1000
/** Of how many callers the metrics have the costs of their lists. */
const MAX_LISTS = 100
/** How often a database that several replicas ask is asked for new records, while a page listens. */
const SHARED_POLL_MS = 200
/** How long running calls may take when the gateway stops. */
const DEFAULT_DRAIN_MS = 30_000
/** How long load balancers have to see that a replica stops, and at most half of the time for stopping. */
const ANNOUNCE_MS = 3_000

/** The current state of groups, logins and servers. */
export interface Watching {
  readonly groupWatch: GroupWatch
  readonly logins: FailedLogins
  readonly addresses: ClientAddresses
  groups(names?: readonly string[]): readonly GroupRow[]
  /** The groups of other replicas. Absent where this gateway is alone. */
  readonly fleetGroups: FleetGroups | undefined
  servers(): readonly ServerRow[]
  /** Watches the groups and servers of the current revision. */
  renew(): void
}

/** Watches groups, servers and logins, and records their changes. */
export function watchGateway(base: GatewayBase, parts: GateParts): Watching {
  const { config, revisions: rules, clock, redact, onFault, lifecycle, replica } = base
  const { gate, fleet, availability, audit } = parts
  const names = rules.derive(({ groups, servers }) => [
    ...groups.map(({ name }) => name),
    ...servers.map(({ name }) => serverGroupName(name)),
  ])
  const groupWatch = createGroupWatch({ names, availability, clock, onFault })
  lifecycle.onClose(() => groupWatch.close())
  const revisions = () => ({ policy_revision: gate.policyRevision, catalog_revision: gate.catalog.revision })
  const direct = createClientAddresses(config.listen.proxies)
  // The replica that forwards a request knows its client, and proves what it says.
  const addresses: ClientAddresses = {
    isProxy: (address) => direct.isProxy(address),
    of: (request) => replica?.elsewhere()?.addressOf(request) ?? direct.of(request),
  }
  const fleetFailures = replica && openFleetFailures(replica, base)
  const logins = createFailedLogins({ audit, clock, revisions, addresses, onFault, fleet: fleetFailures })
  lifecycle.onClose(() => logins.close())
  const recording = { audit, clock, redact, revisions, onFault }
  recordStateChanges({ watch: groupWatch, serverOf: (group) => fleet.serverOfGroup(group), ...recording })
  let identities: ServerIdentities | undefined
  if (!isOff(config.pins)) {
    identities = watchIdentities({
      servers: () => fleet.watched,
      state: parts.state ?? memoryState({ clock }),
      programOf: createProgramReader(),
      ...recording,
    })
    lifecycle.onClose(identities.close)
    lifecycle.onClose(identities.settled)
  }
  const rows = createGroupRows({ groups: () => rules.current.groups, gate, availability, redact })
  const fleetGroups = replica && openFleetGroups(replica, rows, groupWatch, base)
  return {
    groupWatch,
    logins,
    addresses,
    renew() {
      groupWatch.renew()
      identities?.renew()
      fleetGroups?.tell()
    },
    groups: (of) => fleetGroups?.withOthers(rows(of)) ?? rows(of),
    fleetGroups,
    servers: () => fleet.rows((name) => identities?.changeOf(name)),
  }
}

function openFleetFailures({ membership, stores }: OpenedReplica, { clock, onFault, lifecycle }: GatewayBase) {
  const failures = new FleetFailures({ incarnation: membership.self.incarnation, state: stores.state, clock, onFault })
  lifecycle.onClose(() => failures.close())
  return failures
}

function openFleetGroups(
  { membership, stores }: OpenedReplica,
  rows: () => readonly GroupRow[],
  watch: GroupWatch,
  { clock, onFault, lifecycle }: GatewayBase,
): FleetGroups {
  const { self } = membership
  const { state } = stores
  const replicas = () => membership.list()
  const groups = new FleetGroups({ self, state, replicas, rows, watch, clock, onFault })
  groups.tell()
  lifecycle.onClose(() => groups.close())
  return groups
}

function isOff(pins: GatewayConfig['pins']): boolean {
  return (typeof pins === 'object' ? pins.changed : pins) === 'off'
}

/** Creates the MCP endpoints, and drains the gate before the gateway stops. */
export function createMcp(
  { config, revisions, clock, log, onFault, lifecycle, replica }: GatewayBase,
  { gate, lists, items, owners, fleet, connections, held, availability, via, tracing, audit, state: kept }: GateParts,
  { logins, addresses }: Watching,
  { authenticator, origins, publicUrl, runs }: Entrance,
): {
  readonly mcp: McpEndpoints
  readonly streams: ChangeStreams
  readonly tasks: Pick<GatewayTasks, 'resume'>
  renew(): void
} {
  const serverInfo = { name: 'toolgate', version: VERSION }
  const state = kept ?? memoryState({ clock })
  const streams = new ChangeStreams({
    serverInfo,
    onFault,
    offers: revisions.derive((rules) => [...new Set(['tools' as const, ...offersOf(rules)])]),
  })
  const { tasks, approvalTasks, resume, leave } = createTasks({
    state: kept,
    audit,
    clock,
    gate: withLists(gate, fleet),
    names: lists,
    callerOf: ({ client }: TaskOwner, app: string | undefined) => {
      const isServed = app === undefined || gate.apps.list.some(({ name }) => name === app)
      return isServed ? callerAt(authenticator.current(client), toResource(app)) : undefined
    },
    readOwner: ({ client }) => (authenticator.current(client) ? undefined : runs.load(client)),
    cancelUpstream: (server, task, caller) => fleet.cancelTask(server, task, caller),
    isHere: async (server, caller) => {
      const owner = fleet.needsInstance(server) ? instanceOwnerOf(caller) : undefined
      return owner === undefined || (await replica?.elsewhere()?.homes.isHere(owner)) !== false
    },
    onFault,
  })
  const { drainMs = DEFAULT_DRAIN_MS } = config
  lifecycle.onDrain(async () => {
    streams.close()
    const ended = Promise.all([leave(), gate.idle(), elsewhere?.handOver(drainMs)])
    await endsWithin(ended, drainMs)
  })
  if (replica)
    lifecycle.onAnnounce(() => {
      replica.membership.announceEnd()
      return sleep(Math.min(ANNOUNCE_MS, drainMs / 2))
    })
  const isStopping = () => lifecycle.isStopping
  const elsewhere = replica?.open({
    sessions: () => sessions,
    instances: () => fleet.instances,
    needsInstance: (method, params) => needsInstance(fleet, lists.names(), method, params),
    addresses,
    isStopping,
  })
  const sessions = new Sessions({ clock, keeper: elsewhere?.sessions })
  lifecycle.onClose(() => elsewhere?.close())
  const rounds = createRounds({
    gate,
    clock,
    state,
    publicUrl,
    isStopping,
    holder: elsewhere?.self,
    notify: (session, method, params) => streams.notify(session, method, params),
    cancelWaiting: (waiting, server, caller, why) => {
      const id = heldIn(waiting)
      if (id !== undefined) held.cancel(id, why)
      if (isTaskState(waiting) && server !== undefined) void fleet.cancelTask(server, waiting, caller)
    },
  })
  const servers = new Instructions({
    servers: () => fleet.instructing,
    catalogOf: (caller) => gate.catalog.of(caller),
    check: config.definitions ?? 'warn',
    missing: (caller) => connections.missing(caller),
    warn: (message, server) => log({ level: 'warn', message, server }),
  })
  const mcp = new McpEndpoints({
    gate,
    texts: { own: config.instructions, servers },
    rounds,
    tasks,
    runsTasks: (server) =>
      fleet.upstreams.some(({ name, state: { tasks: hasTasks } }) => hasTasks === true && (server ?? name) === name),
    approvalTasks,
    lists,
    items: {
      offers: offersOf(revisions.current),
      names: lists,
      lists: items,
      owners,
      complete: (server, params, call) => fleet.complete(server, params, call),
      watchResource: (server, uri, call, listener) => fleet.watchResource(server, uri, call, listener),
    },
    prepare: (caller, isList) => fleet.prepare(caller, isList),
    listProblemOf: (caller) => fleet.listProblemOf(caller),
    availability,
    streams,
    sessions,
    elsewhere,
    keepAlive: new KeepAlive(),
    held: new HeldStreams({ clock }),
    questions: new Questions(),
    isStopping,
    serverInfo,
    listTtlMs: LIST_TTL_MS,
    capabilities: toCapabilities(revisions.current),
    authenticator,
    via,
    logins,
    origins,
    tracing,
    onFault,
  })
  lifecycle.onClose(() => mcp.close())
  revisions.onEnded(({ ended, replaced }) => {
    sessions.endOf(ended)
    streams.endOf(replaced)
  })
  return {
    mcp,
    streams,
    tasks: { resume },
    renew: () => mcp.renew({ offers: offersOf(revisions.current), capabilities: toCapabilities(revisions.current) }),
  }
}

/** Returns the views of a gate, each after the lists that its caller has alone: a call may go on after a restart. */
function withLists(gate: Gate, fleet: Pick<Fleet, 'prepare'>): Pick<Gate, 'apps' | 'view' | 'subscribe' | 'approvals'> {
  return {
    apps: gate.apps,
    approvals: gate.approvals,
    subscribe: (listener) => gate.subscribe(listener),
    async view(caller, options) {
      await fleet.prepare(caller, false)
      return gate.view(caller, options)
    },
  }
}

/** Returns what some server offers. */
function offersOf({ servers }: Rules): readonly Offer[] {
  return OFFERS.filter((offer) => servers.some(({ offers }) => offers.includes(offer)))
}

/** Returns what clients may ask of the gateway. */
function toCapabilities(rules: Rules): ServerCapabilities {
  const offers = offersOf(rules)
  const resources = offers.includes('resources')
  const prompts = offers.includes('prompts')
  return {
    tools: { listChanged: true },
    ...(resources && { resources: { subscribe: true, listChanged: true } }),
    ...(prompts && { prompts: { listChanged: true } }),
    ...((resources || prompts) && { completions: {} }),
    // Log messages are announced only if a server may send some.
    ...(rules.servers.some(({ may }) => may?.log === true) && { logging: {} }),
  }
}

export function toApiDeps(
  { config, revisions, clock, redact, log, onFault, lifecycle, report, replica }: GatewayBase,
  parts: GateParts,
  { groups, fleetGroups, servers, logins }: Watching,
  { authenticator, origins, port, publicUrl, runs, signedIn }: Entrance,
): ApiDeps {
  const {
    gate,
    fleet,
    connections,
    lists,
    metaIds,
    selectors,
    warnings,
    audit,
    auditProblems,
    clauseHits,
    state: kept,
  } = parts
  const limits = revisions.derive((rules) =>
    parseLimits(rules.limits, selectors()).map((limit, i) => {
      const written = rules.limits[i]
      return { ...limit, text: typeof written === 'string' ? written : limitText(limit) }
    }),
  )
  const { oidc } = config
  const state = kept ?? memoryState({ clock })
  if (oidc && publicUrl === undefined)
    throw new ConfigError('publicUrl', 'is needed with oidc: people come back to a URL that their browser knows')
  return {
    authenticator,
    origins,
    logins,
    oidc:
      oidc && publicUrl !== undefined
        ? { config: oidc, publicUrl, clock, state, log: (message) => log({ level: 'warn', message }) }
        : undefined,
    hasTenants: config.oauth?.issuers.some(({ tenant, claims }) => (tenant ?? claims.tenant) !== undefined) ?? false,
    callers: () => revisions.current.callers,
    signedIn,
    onEnded: revisions.onEnded,
    async recordChange(reason, detail, by) {
      const at = { policy_revision: gate.policyRevision, catalog_revision: gate.catalog.revision }
      await audit.write({ event: 'config_changed', reason, detail, user_id: by, wallMs: clock.wallMs(), ...at })
    },
    budgets: (limit) => gate.budgets(limit),
    view: (caller, app) => gate.view(caller, { app }),
    tools: (caller) => (caller ? gate.catalog.of(caller).snapshot : gate.catalog.snapshot()).tools,
    items: (caller) => (caller ? gate.catalog.of(caller).items : gate.catalog.items()).tools,
    listsOf: (caller) => fleet.listsOf(caller),
    limitsOf: (tool) =>
      limits().flatMap(({ selector, text }) => (matchesSelector(selector, tool, 'possible') ? [text] : [])),
    wireName: (id, view) => {
      const namesOf = (of?: View) => (kindOfId(id) === 'prompt' ? lists.promptNames(of) : lists.names(of))
      return namesOf().toName(id) ?? (view && namesOf(view).toName(id))
    },
    groups,
    refreshGroups: () => fleetGroups?.refresh(),
    servers,
    logs: (server, range) => fleet.logs.of(server, range),
    async restart(server) {
      if (replica) return replica.restarts.ask(server)
      await fleet.restart(server)
      return undefined
    },
    policy: () => {
      const { number, places, policySource } = revisions.current
      return { revision: number, places, source: policySource }
    },
    clauses: (paths) => clauseHits.read(paths),
    warnings: () => warnings.list().map((warning) => ({ ...warning, text: redact.redactText(warning.text) })),
    audit,
    evidence: () => {
      const { checkpoints, problems = [] } = audit.evidence?.() ?? {}
      const { store } = config.audit
      return { store, ...(checkpoints && { checkpoints }), problems: [...auditProblems, ...problems] }
    },
    approvals: redactApprovals(gate.approvals, redact),
    comparisons: new Comparisons({
      approvals: gate.approvals,
      servers: () => revisions.current.servers,
      authenticator,
      loadRun: (id) => runs.load(id),
      view: (caller, app) => withLists(gate, fleet).view(caller, { app }),
      redact,
      clock,
    }),
    pins: gate.pins,
    agents: {
      view: (caller, app) => withLists(gate, fleet).view(caller, { app }),
      approvalUrl: ({ id }) => approvalUrl(id, publicUrl),
      isStopping: () => lifecycle.isStopping,
    },
    apps: () => toAppRows(gate.apps, metaIds()),
    needs: createNeedRows({ gate, groups: () => revisions.current.groups, redact }),
    preferences: gate.preferences,
    connections,
    halts: {
      halt: gate.halt,
      release: gate.release,
      underWay: gate.underWay,
      list: () => gate.halts,
      reach: (target) =>
        toolReach(target, {
          tools: [...gate.catalog.snapshot(), ...ownToolsOf(gate, target)],
          groups: selectors(),
        }),
    },
    redact,
    clock,
    policyRevision: () => gate.policyRevision,
    catalogRevision: () => gate.catalog.revision,
    replica: report,
    sharedState: report && kept,
    // The cookie of one replica is that of all.
    cookieName: report ? 'toolgate_session' : `toolgate_session_${port}`,
    onFault,
  }
}

/** Returns the tools on the lists of the users that a target names, each id once. */
function ownToolsOf({ catalog }: Gate, { user, tenant }: HaltTarget): readonly Tool[] {
  const isNamed = (owner: { readonly user: string; readonly tenant?: string | undefined }) =>
    (user === undefined || owner.user === user) && (tenant === undefined || owner.tenant === tenant)
  const own = catalog.own.flatMap(({ owner, tools }) => (isNamed(owner) ? tools : []))
  const others = own.filter(({ id, kind }) => kind === 'tool' && !catalog.get(id))
  return [...new Map(others.map((tool) => [tool.id, tool])).values()]
}

/** Returns the text of a limit that was given as an object: `files:*:5/1.5 per tenant`. */
function limitText({ selector, label, per }: ReturnType<typeof parseLimits>[number]): string {
  return `${selector.text}:${label} per ${per.join(', ') || 'all callers together'}`
}

/** What the handlers of the port need beside the gate. */
interface HttpParts {
  readonly apiDeps: ApiDeps
  readonly consoleDir: string
  /** When the certificate ends, if the gateway has one. */
  readonly certificateExpiresAtMs: () => number | undefined
  readonly entrance: Pick<Entrance, 'issuers' | 'refusedTokens' | 'resources'>
}

/** Returns the handlers of the port. */
export function toHttpDeps(
  { config, redact, onFault, lifecycle, report, replica }: GatewayBase,
  { gate, audit, counts, warnings, fleet, checkWritable }: GateParts,
  { groups, groupWatch, fleetGroups, logins, servers }: Watching,
  { mcp, streams }: { readonly mcp: McpEndpoints; readonly streams: ChangeStreams },
  { apiDeps, consoleDir, certificateExpiresAtMs, entrance }: HttpParts,
): HttpDeps {
  const { authenticator, origins } = apiDeps
  const isStopping = () => lifecycle.isStopping
  const elsewhere = () => replica?.elsewhere()
  const shownIn = async (request: Request) => (await api()).shownIn(request)
  const comparedIn: Api['comparedIn'] = async (...asked) => (await api()).comparedIn(...asked)
  const triedIn: Api['triedIn'] = async (...asked) => (await api()).triedIn(...asked)
  const places = { shownIn, comparedIn, triedIn }
  const place = replica && new ApiPlace({ elsewhere, authenticator, origins, fleet, ...places, isStopping, onFault })
  const isForwarded = (request: IncomingMessage) => place?.isForwarded(request) === true
  const api = once(async () => {
    const made = (await import('../admin/http/api.ts')).createApi({ ...apiDeps, isForwarded })
    await made.opened()
    return made
  })
  const liveSocket = loadLater<LiveSocket>(async () => {
    const [{ createLiveSocket }, { admit }] = await Promise.all([import('../admin/live/live-socket.ts'), api()])
    const { approvals } = gate
    const shared = config.audit.store === 'postgres' && { pollMs: SHARED_POLL_MS }
    return createLiveSocket({
      admit,
      logins,
      groups,
      groupWatch,
      fleetGroups,
      audit,
      approvals,
      redact,
      onFault,
      ...shared,
    })
  })
  const listCosts = createListCosts()
  const namedCallers = createNamedCallers(apiDeps.callers)
  const lists = async (person: Caller) => {
    const agents = [...namedCallers(person).values()].filter((one) => one.for === 'mcp')
    return (await listCosts.all(agents, apiDeps, MAX_LISTS)).lists
  }
  const isPublic = config.metrics?.public ?? false
  const changesOf = (name: string) => groupWatch.counts.get(name) ?? 0
  const metrics = createMetrics({
    counts,
    gate,
    warnings: warnings.list,
    approvals: gate.approvals,
    audit,
    servers,
    groups: () => groups().map(({ name, available }) => ({ name, available, changes: changesOf(name) })),
    failedLogins: () => logins.count,
    pins: gate.pins,
    evidence: apiDeps.evidence,
    issuers: entrance.issuers,
    refusedTokens: entrance.refusedTokens,
    certificateExpiresAtMs,
    lists,
    replica: report,
    streams: () => ({ lists: streams.count, pages: liveSocket.loaded()?.connections ?? 0 }),
    onFault,
  })
  return {
    mcp: mcp.serve,
    mcpOf: (app) => mcp.ofApp(app),
    resources: entrance.resources,
    health: createHealth({
      servers,
      issuers: entrance.issuers,
      isStopping: () => lifecycle.isLeaving,
      replica: report?.state,
      reloadWaiting: apiDeps.reloadWaiting,
      auditProblem: () => audit.problem,
      checkState: checkWritable,
      nowMs: () => apiDeps.clock.monotonicMs(),
    }),
    authenticator,
    origins,
    metrics: createMetricsEndpoint({
      authenticator,
      origins,
      logins,
      isPublic,
      metrics,
    }),
    isForwarded,
    pages: once(async () => {
      const { createConsole, createPages } = await import('../admin/http/console.ts')
      const answer = createPages({ api: await api(), console: createConsole(consoleDir) })
      if (!place) return answer
      return async (request: IncomingMessage, response: ServerResponse) => {
        if (!(await place.place(request, response))) await answer(request, response)
      }
    }),
    live: async (request, socket, head) => {
      try {
        await (await liveSocket.load()).upgrade(request, socket, head)
      } catch (error) {
        onFault(error)
        socket.destroy()
      }
    },
    endStreams: () => {
      liveSocket.loaded()?.close()
      streams.close()
    },
    onFault,
  }
}

/** Loads a part at its first use, as most gateways never need it. */
function loadLater<T>(load: () => Promise<T>): { load(): Promise<T>; loaded(): T | undefined } {
  let loaded: T | undefined
  const loading = once(async () => (loaded = await load()))
  return { load: loading, loaded: () => loaded }
}
