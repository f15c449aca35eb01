import { randomUUID } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { combineTelemetry, ConfigError, createGate, type Gate, type GateOptions } from '@toolgate/core'
import { createAvailability, parseGroups } from '@toolgate/core/groups'
import { checkShape, parseLimits, shapeOf } from '@toolgate/core/internal'
import type { Redactor } from '@toolgate/core/redact'
import { type Clock, memoryState, systemClock } from '@toolgate/core/stores'
import { matchesSelector } from '@toolgate/core/toolset'
import { createMetaTools, ToolLists } from '@toolgate/mcp'
import type { Api } from './api/api.ts'
import type { ApiDeps } from './api/deps.ts'
import { toAppRows, createGroupRows, createNeedRows } from './api/rows.ts'
import { haltReach } from './api/routes/halts.ts'
import { createHealth } from './api/health.ts'
import type { GroupRow, ServerRow } from './api/wire.ts'
import { createFailedLogins } from './auth/failed-logins.ts'
import { createKeyring } from './auth/keyring.ts'
import { createOriginRules } from './auth/origin.ts'
import { serverGroupName, toApps, toGroups } from './catalog/groups.ts'
import { UpstreamSource } from './catalog/sources.ts'
import type { GatewayConfig, GroupConfig, ServerConfig } from './config/config.ts'
import { saysNothing } from './config/policy.ts'
import { listen } from './http/server.ts'
import { createGroupWatch } from './live/group-watch.ts'
import type { LiveSocket } from './live/live-socket.ts'
import { type ServerIdentities, type WatchedServer, watchIdentities } from './live/server-identity.ts'
import { recordStateChanges } from './live/state-changes.ts'
import { ChangeStreams } from './mcp/change-streams.ts'
import { McpEndpoints, withVia } from './mcp/endpoint.ts'
import { Sessions, unlockByCalls } from './mcp/sessions.ts'
import { once } from './once.ts'
import { findAuditProblems, openAudit, openState } from './stores.ts'
import { createGatewayRedactor, redactApprovals, redactLog, redactServer } from './redaction.ts'
import { countCalls } from './telemetry/call-counts.ts'
import { createTelemetry } from './telemetry/lazy.ts'
import type { FindTracing } from './telemetry/tracing.ts'
import { createMetrics } from './telemetry/metrics.ts'
import { createMetricsEndpoint } from './telemetry/metrics-endpoint.ts'
import { createReaper, type Reaper } from './upstream/reaper.ts'
import { createUpstream } from './upstream/create-upstream.ts'
import type { Upstream } from './upstream/upstream.ts'
import { VERSION } from './version.ts'
import { createWarnings } from './warnings.ts'

export interface GatewayOptions {
  readonly clock?: Clock
  /** Where the built console lies. Default: beside this package. */
  readonly consoleDir?: string
  readonly log?: (line: LogLine) => void
  /** The longest time that an answer of a probe is kept, whatever the groups say. Default: what they say. */
  readonly probeEveryMs?: number
}

const OPTIONS = shapeOf<GatewayOptions>({ clock: true, consoleDir: true, log: true, probeEveryMs: true })

/** One line of the gateway's log. `detail` may hold what a caller must not see. */
export interface LogLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  readonly message: string
  readonly server?: string
  readonly detail?: string
}

/** A gateway that listens. */
export interface RunningGateway {
  /** Such as `http://127.0.0.1:8787`. */
  readonly url: string
  readonly port: number
  readonly gate: Gate
  /** Resolves when every server has answered or failed its first start, and the probes have had a second. */
  readonly ready: Promise<void>
  servers(): readonly ServerRow[]
  groups(): readonly GroupRow[]
  /**
   * Refuses new calls, waits up to `drainMs` for those that run, and then stops listening, the servers and their children,
   * and writes what is left of the audit, within 2 s.
   */
  close(): Promise<void>
}

const LIST_TTL_MS = 1000
const DEFAULT_TTL_MS = 10_000
/** How long a gateway that starts waits for what its groups need; what is later is unknown until then. */
const FIRST_ASK_MS = 1000
/** How long calls under way may go on when the gateway stops. */
export const DEFAULT_DRAIN_MS = 30_000
/** How long answers may take that are being written when the port is closed. */
const ANSWER_MS = 250
/** How long the records of those that are stopped then may take. */
const RECORDS_MS = 500
/** A server's own timeout ends its calls; this ends what is left when progress goes on and on. */
const DEADLINE_FACTOR = 10
const CONSOLE_DIR = fileURLToPath(new URL('../console/', import.meta.url))

/**
 * Starts a gateway: its port first, then its servers. It answers as soon as it listens; tools of a server
 * that is still starting are not listed yet.
 *
 * @throws {ToolgateError} `port_taken`; {@link ConfigError} for a policy, group or limit that
 * cannot be used, and for a missing policy
 */
export async function startGateway(config: GatewayConfig, options: GatewayOptions = {}): Promise<RunningGateway> {
  checkShape('startGateway', options, OPTIONS)
  const { clock = systemClock } = options
  const redact = createGatewayRedactor(config)
  const log = redactLog(options.log ?? (() => {}), redact)
  const onFault = (error: unknown) => log({ level: 'error', message: 'a fault', detail: describe(error) })
  if (saysNothing(config.policy))
    throw new ConfigError('policy', 'would let every key call every tool; use [{ allow: ["*"] }] to mean that')
  const keyring = createKeyring(config.callers)
  const listener = await listen(config.listen)
  const closers: (() => Promise<void> | void)[] = [() => listener.close()]
  let isStopping = false
  let drain = async () => {}
  const close = once(async () => {
    isStopping = true
    await drain()
    await closeAll(closers, onFault)
  })
  try {
    const { host } = config.listen
    const origins = createOriginRules({ host, port: listener.port, origins: config.listen.origins ?? [] })
    const audit = await openAudit(config.audit, { redact, onFault })
    closers.push(() => audit.close())
    const auditProblems = await findAuditProblems(config.audit)
    for (const { message } of auditProblems) log({ level: 'warn', message })
    const { close: closeState, ...kept } = await openState(config.state, config.approvals)
    closers.push(closeState)

    const { calls: followed, tracing } = await createTelemetry(onFault)
    const counts = countCalls(clock)
    const via = randomUUID()
    const fleet = createFleet(config, via, { clock, log, redact, tracing })
    closers.push(() => fleet.close())
    const gateGroups = toGroups(withTtl(config.groups, options.probeEveryMs), {
      servers: fleet.upstreams,
      redactor: redact,
      reaper: fleet.reaper,
    })
    const monitor = createAvailability(gateGroups, { clock, onFault })
    closers.push(() => monitor.close())
    // Before anybody looks: what knows its state by itself, as servers do, is known from the beginning.
    const asked = monitor.start()

    const parsedGroups = parseGroups(gateGroups, new Map(Object.entries(config.aliases ?? {})))
    const { selectors, locked } = parsedGroups
    const search = config.search ?? { offer: 'auto' }
    const onUnlocked = () => mcp.wake()
    const metaTools = createMetaTools({ groups: parsedGroups, search, gate: () => gate, onUnlocked })
    const metaIds = metaTools.map(({ id }) => id)
    const warnings = createWarnings({
      config,
      sources: fleet.sources,
      gate: () => gate,
      log: (message) => log({ level: 'warn', message }),
    })
    const gate: Gate = createGate({
      tools: metaTools,
      ...([...locked.values()].some(({ unlock }) => typeof unlock === 'object')
        ? { hooks: unlockByCalls(() => gate.locks, onUnlocked) }
        : {}),
      sources: fleet.sources,
      groups: gateGroups,
      ...(config.aliases === undefined ? {} : { aliases: config.aliases }),
      apps: toApps(config.apps, metaIds),
      policy: config.policy,
      limits: config.limits,
      ...kept,
      availability: monitor,
      audit,
      clock,
      onFault,
      onWarning: warnings.logOfGate,
      telemetry: combineTelemetry(followed, counts),
      ...(config.pins === undefined ? {} : { pins: config.pins }),
      ...(config.definitions === undefined ? {} : { definitions: config.definitions }),
      redactor: redact,
      ...toBounds(config),
    })
    gate.catalog.subscribe(warnings.logNew)
    closers.push(async () => {
      await endsWithin(gate.close(), RECORDS_MS)
      // What was stopped is answered before the rest goes.
      await listener.close()
    })

    const lists = new ToolLists(gate, search)
    let identities: ServerIdentities | undefined
    const servers = () =>
      config.servers.map(({ name }) =>
        redactServer({ ...toServerRow(fleet, name), ...changedOf(identities, name) }, redact),
      )
    const groups = createGroupRows({ groups: config.groups, gate, availability: monitor, redact })
    const groupWatch = createGroupWatch({
      names: [...config.groups, ...config.servers.map(({ name }) => ({ name: serverGroupName(name) }))].map(
        ({ name }) => name,
      ),
      availability: monitor,
      clock,
      onFault,
    })
    closers.push(() => groupWatch.close())
    const revisions = () => ({ policy_revision: gate.policyRevision, catalog_revision: gate.catalog.revision })
    const logins = createFailedLogins({ audit, clock, revisions, onFault })
    closers.push(() => logins.close())
    recordStateChanges({
      watch: groupWatch,
      servers: new Map(fleet.upstreams.map((upstream) => [upstream.name, upstream])),
      audit,
      clock,
      redact,
      revisions,
      onFault,
    })
    if (!isOff(config.pins)) {
      identities = watchIdentities({
        servers: config.servers.map((server, i) => toWatched(server, fleet.upstreams[i] as Upstream)),
        state: kept.state ?? memoryState({ clock }),
        audit,
        clock,
        redact,
        revisions: () => ({ policy_revision: gate.policyRevision, catalog_revision: gate.catalog.revision }),
        onFault,
      })
      closers.push(identities.close)
      closers.push(identities.settled)
    }
    const serverInfo = { name: 'toolgate', version: VERSION }
    const streams = new ChangeStreams({ serverInfo, onFault })
    drain = async () => {
      streams.close()
      await endsWithin(gate.idle(), config.drainMs ?? DEFAULT_DRAIN_MS)
    }
    const mcp = new McpEndpoints({
      gate,
      lists,
      availability: monitor,
      streams,
      sessions: new Sessions({ clock }),
      isStopping: () => isStopping,
      serverInfo,
      listTtlMs: LIST_TTL_MS,
      keyring,
      via,
      logins,
      origins,
      tracing,
      onFault,
    })
    closers.push(() => mcp.close())
    const limits = parseLimits(config.limits, selectors).map((limit, i) => {
      const written = config.limits[i]
      return { ...limit, text: typeof written === 'string' ? written : limitText(limit) }
    })
    const apiDeps: ApiDeps = {
      keyring,
      origins,
      logins,
      callers: config.callers,
      view: (caller, app) => gate.view(caller, { app }),
      tools: () => gate.catalog.snapshot().tools,
      limitsOf: (tool) =>
        limits.flatMap(({ selector, text }) => (matchesSelector(selector, tool, 'possible') ? [text] : [])),
      wireName: (id) => lists.names().toName(id),
      groups,
      servers,
      warnings: () => warnings.list().map((warning) => ({ ...warning, text: redact.redactText(warning.text) })),
      audit,
      evidence: () => {
        const { checkpoints, problems = [] } = audit.evidence?.() ?? {}
        const { store } = config.audit
        return { store, ...(checkpoints && { checkpoints }), problems: [...auditProblems, ...problems] }
      },
      approvals: redactApprovals(gate.approvals, redact),
      pins: gate.pins,
      apps: () => toAppRows(gate.apps, new Set(metaIds)),
      needs: createNeedRows({ gate, groups: config.groups, redact }),
      preferences: gate.preferences,
      halts: {
        halt: gate.halt,
        release: gate.release,
        list: () => gate.halts,
        reach: (target) =>
          haltReach(target, { tools: gate.catalog.snapshot().tools, callers: config.callers, groups: selectors }),
      },
      redact,
      clock,
      policyRevision: () => gate.policyRevision,
      catalogRevision: () => gate.catalog.revision,
      cookieName: `toolgate_session_${listener.port}`,
      onFault,
    }
    const api = once(async () => (await import('./api/api.ts')).createApi(apiDeps))
    const liveSocket = loadLater<LiveSocket>(async () => {
      const [{ createLiveSocket }, { admit }] = await Promise.all([import('./live/live-socket.ts'), api()])
      return createLiveSocket({ admit, logins, groups, groupWatch, audit, gate, redact, onFault })
    })
    const metrics = createMetrics({
      counts,
      gate,
      warnings: warnings.list,
      approvals: gate.approvals,
      audit,
      servers,
      groups: () =>
        groups().map(({ name, available }) => ({ name, available, changes: groupWatch.counts.get(name) ?? 0 })),
      failedLogins: () => logins.count,
      streams: () => ({ lists: streams.count, pages: liveSocket.loaded()?.connections ?? 0 }),
      onFault,
    })
    listener.attach({
      mcp: mcp.serve,
      mcpOf: (app) => mcp.ofApp(app),
      health: createHealth({ servers, isStopping: () => isStopping }),
      keyring,
      origins,
      metrics: createMetricsEndpoint({ keyring, origins, logins, isPublic: config.metrics?.public ?? false, metrics }),
      pages: once(() => loadPages(api, options.consoleDir ?? CONSOLE_DIR)),
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
    })
    const ready = Promise.all([
      endsWithin(asked, FIRST_ASK_MS),
      ...fleet.upstreams.map((upstream) => upstream.start()),
    ]).then(warnings.logNew)
    return {
      url: `http://${host.includes(':') ? `[${host}]` : host}:${listener.port}`,
      port: listener.port,
      gate,
      ready,
      servers,
      groups,
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

/** Writes a limit that was given as an object: `files:*:5/1.5 per tenant`. */
function limitText({ selector, label, per }: ReturnType<typeof parseLimits>[number]): string {
  return `${selector.text}:${label} per ${per.join(', ') || 'all callers together'}`
}

/** Gives what bounds each call. */
function toBounds({
  calls,
  servers,
}: GatewayConfig): Pick<GateOptions, 'deadlineMs' | 'maxOutputChars' | 'concurrency'> {
  const { maxOutputChars, concurrency = [] } = calls ?? {}
  const longest = Math.max(...servers.map(({ callTimeoutMs }) => callTimeoutMs), 1000)
  return {
    deadlineMs: calls?.deadlineMs ?? DEADLINE_FACTOR * longest,
    ...(maxOutputChars === undefined ? {} : { maxOutputChars }),
    concurrency,
  }
}

interface Fleet {
  readonly reaper: Reaper
  readonly upstreams: readonly Upstream[]
  readonly sources: readonly UpstreamSource[]
  close(): Promise<void>
}

function createFleet(
  config: GatewayConfig,
  via: string,
  deps: { clock: Clock; log: (line: LogLine) => void; redact: Redactor; tracing: FindTracing },
): Fleet {
  const reaper = createReaper()
  const upstreams = config.servers.map((server) => createUpstream(withVia(server, via), { reaper, ...deps }))
  return {
    reaper,
    upstreams,
    sources: config.servers.map((server, i) => new UpstreamSource(server, upstreams[i] as Upstream)),
    async close() {
      await Promise.all(upstreams.map((upstream) => upstream.close()))
      await reaper.close()
    },
  }
}

function withTtl(groups: readonly GroupConfig[], mostMs = Number.POSITIVE_INFINITY): readonly GroupConfig[] {
  return groups.map((group) => (mostMs < (group.ttlMs ?? DEFAULT_TTL_MS) ? { ...group, ttlMs: mostMs } : group))
}

function isOff(pins: GatewayConfig['pins']): boolean {
  return (typeof pins === 'object' ? pins.changed : pins) === 'off'
}

function toWatched(config: ServerConfig, upstream: Upstream): WatchedServer {
  return {
    config,
    get state() {
      return upstream.state
    },
    subscribe: (listener) => upstream.subscribe(listener),
  }
}

function changedOf(identities: ServerIdentities | undefined, name: string): Pick<ServerRow, 'changed'> {
  const changed = identities?.changeOf(name)
  return changed ? { changed } : {}
}

function toServerRow({ upstreams, sources }: Fleet, name: string): ServerRow {
  const at = upstreams.findIndex((upstream) => upstream.name === name)
  const { state, tools } = upstreams[at] as Upstream
  const refused = (sources[at] as UpstreamSource).rejected
  return {
    name,
    status: state.status,
    ...(state.reason === undefined ? {} : { reason: state.reason }),
    since: state.since,
    restarts: state.restarts,
    toolCount: tools.length - refused.length,
    ...(state.era === undefined ? {} : { era: state.era }),
    rejected: [...state.rejected, ...refused],
  }
}

async function loadPages(api: () => Promise<Api>, consoleDir: string) {
  const { createConsole, createPages } = await import('./api/console.ts')
  return createPages({ api: await api(), console: createConsole(consoleDir) })
}

/** What most gateways that run never need is loaded when it is first asked for. */
function loadLater<T>(load: () => Promise<T>): { load(): Promise<T>; loaded(): T | undefined } {
  let loaded: T | undefined
  const loading = once(async () => (loaded = await load()))
  return { load: loading, loaded: () => loaded }
}

/**
 * Closes in the order opposite to opening, but for the port, which goes first, so that nothing new begins. Answers on their
 * way get a moment; the gate, which is next, stops the calls that still run.
 */
async function closeAll(
  closers: readonly (() => Promise<void> | void)[],
  onFault: (error: unknown) => void,
): Promise<void> {
  const close = async (step: () => Promise<void> | void) => {
    try {
      await step()
    } catch (error) {
      onFault(error)
    }
  }
  const [port, ...rest] = closers
  const portClosed = port && close(port)
  if (portClosed) await endsWithin(portClosed, ANSWER_MS)
  for (const step of rest.toReversed()) await close(step)
  await portClosed
}

function endsWithin(work: Promise<void>, ms: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms)
    work.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}

function describe(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}
