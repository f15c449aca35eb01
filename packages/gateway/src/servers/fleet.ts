import type { CallContext, Caller } from '@toolgate/core'
import path from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { Admission } from '@toolgate/core/call'
import { isItemId } from '@toolgate/core/tools'
import { endsWithin } from '@toolgate/values'
import type { JsonObject } from '@toolgate/values/json'
import type { Redactor } from '@toolgate/values/redact'
import type { Clock } from '@toolgate/core/stores'
import type { ListRow, ServerInstances, ServerRow } from '../model/rows.ts'
import { serverGroupName } from './catalog/groups.ts'
import { UserSources } from './catalog/own-sources.ts'
import { findRejected } from './catalog/rejected.ts'
import { UpstreamSource } from './catalog/sources.ts'
import { toComparable } from '../config/comparable.ts'
import type { GatewayConfig, ServerConfig } from '../config/config.ts'
import { mayWords } from '../config/may.ts'
import type { Connections } from './connections/connections.ts'
import type { WatchedServer } from './catalog/server-identity.ts'
import { withVia } from './via.ts'
import type { InstructingServer } from './catalog/instructions.ts'
import { redactServer } from '../config/redaction.ts'
import type { UserHomes } from '../model/homes.ts'
import { ServerAsks, type ServerAsksOptions } from './asks/server-asks.ts'
import { cancelTask } from './asks/upstream-tasks.ts'
import type { FindTracing } from '../telemetry/tracing.ts'
import { createUpstream } from './lifecycle/create-upstream.ts'
import { createWaitingUpstream } from './lifecycle/waiting-upstream.ts'
import { FirstStarts } from './lifecycle/first-starts.ts'
import { countStates, DEFAULT_INSTANCES, Instances, type InstanceInfo } from './instances/instances.ts'
import { ownerOf } from '../model/owner.ts'
import { PerUserUpstream, type ServerConnections } from './instances/per-user-upstream.ts'
import { createReaper, type Reaper } from '../util/reaper.ts'
import { type CallParts, RunningCalls } from './asks/relayed-call.ts'
import { ServerLogs, type UpstreamLogLine } from './transport/server-logs.ts'
import type { RejectedItem, Upstream, UpstreamCall } from '../model/upstream.ts'
import type { UserList, UserLists } from './instances/user-lists.ts'

interface FleetDeps {
  readonly clock: Clock
  readonly log: (line: UpstreamLogLine) => void
  readonly redact: Redactor
  readonly tracing: FindTracing
  /** Throws if no call may be sent now. Default: never. */
  readonly checkStart?: (() => void) | undefined
  /** Finds the replica that has a user's instances. Absent if this gateway runs alone. */
  readonly homes?: (() => UserHomes | undefined) | undefined
  /** The connections of users' accounts. Default: none. */
  readonly connections?: Pick<Connections, 'credentialOf' | 'missingOf' | 'onEnded'>
  /** Options for the requests of every server to clients. */
  readonly asks: Omit<ServerAsksOptions, 'server'>
}

interface Server {
  readonly config: ServerConfig
  readonly upstream: Upstream
  readonly source: UpstreamSource
  /** The running calls of the server, from all of its sources. */
  readonly running: RunningCalls
  /** Absent if all users share the server. */
  readonly perUser: PerUserUpstream | undefined
}

/** Prepared servers of another configuration. */
export interface StagedFleet {
  readonly upstreams: readonly Upstream[]
  readonly sources: readonly UpstreamSource[]
  /** Replaces the servers. Returns those to start, and those that end after their calls. */
  commit(): { readonly started: readonly Upstream[]; readonly retired: readonly RetiredServer[] }
}

export interface RetiredServer {
  readonly upstream: Upstream
  readonly running: Pick<RunningCalls, 'idle'>
}

/** The fields of a server's entry that concern only the gateway, not its process. */
const OVERLAYS: ReadonlySet<string> = new Set([
  'tools',
  'resources',
  'prompts',
  'trustHints',
  'inputs',
  'accepts',
  'names',
  'instructions',
  'waitForStart',
])

function isSameProcess(a: ServerConfig, b: ServerConfig): boolean {
  const ofProcess = (config: ServerConfig) => Object.entries(config).filter(([key]) => !OVERLAYS.has(key))
  return isDeepStrictEqual(Object.fromEntries(ofProcess(a)), Object.fromEntries(ofProcess(b)))
}

function byName(servers: readonly Server[]): ReadonlyMap<string, Server> {
  return new Map(servers.map((server) => [server.config.name, server]))
}

/** The servers of a configuration, in its order. */
export class Fleet {
  readonly reaper: Reaper = createReaper()
  readonly logs: ServerLogs
  readonly instances: Instances
  readonly #deps: FleetDeps
  readonly #open: (config: ServerConfig) => Pick<Server, 'upstream' | 'perUser' | 'running'>
  #servers: readonly Server[]
  #changeOf: (name: string) => ServerRow['changed'] | undefined = () => undefined
  #byName: ReadonlyMap<string, Server>

  /** `via` marks this gateway's requests, so that it does not call itself. */
  constructor(
    { file, instances: given = {} }: Pick<GatewayConfig, 'file' | 'instances'>,
    servers: readonly ServerConfig[],
    via: string,
    deps: FleetDeps,
  ) {
    this.#deps = deps
    const { path: folder = path.join(path.dirname(file), '.toolgate/instances'), ...bounds } = given
    this.instances = new Instances({ ...DEFAULT_INSTANCES, ...bounds }, () => deps.homes?.())
    const own = { instances: this.instances, folder, homes: deps.homes }
    this.logs = new ServerLogs(deps.clock)
    const shared = { reaper: this.reaper, firstStarts: new FirstStarts(), ...deps, log: this.logs.keeping(deps.log) }
    this.#open = (config) => {
      if (config.absent)
        return { perUser: undefined, upstream: createWaitingUpstream(config, shared), running: new RunningCalls() }
      const sent = withVia(config, via)
      const connections = toServerConnections(config, deps.connections)
      const perUser = config.per === 'user' ? new PerUserUpstream(sent, { ...shared, ...own, connections }) : undefined
      perUser?.subscribe(() => (this.admission.isNeeded = this.needsInstance()))
      return { perUser, upstream: perUser ?? createUpstream(sent, shared), running: new RunningCalls() }
    }
    this.#servers = servers.map((config) => this.#create(config, undefined))
    this.#byName = byName(this.#servers)
    this.admission.isNeeded = this.needsInstance()
    deps.connections?.onEnded((ended) => {
      for (const { server, user, tenant } of ended)
        void this.#byName.get(server)?.perUser?.endOf({ user, ...(tenant === undefined ? {} : { tenant }) })
    })
  }

  /** Returns the owners of the lists that a caller sees, for servers with a list per user. */
  listsOf(caller: Caller): readonly ListRow[] {
    const owner = ownerOf(caller)
    return this.#servers.flatMap(({ config: { name }, perUser }): readonly ListRow[] => {
      if (!perUser?.lists) return []
      if (!owner) return [{ server: name, state: 'no_user' }]
      const { name: user, ofTenant: tenant } = owner
      const state = perUser.listOf(caller) ? 'known' : 'unknown'
      const why = perUser.whyUnknown(caller)?.text
      const reason = why === undefined ? {} : { reason: this.#deps.redact.redactText(why) }
      return [{ server: name, user, ...(tenant === undefined ? {} : { tenant }), state, ...reason }]
    })
  }

  /**
   * Returns why a caller's list may lack items, as a text for the caller. `undefined`: every list is known. A server that
   * has not listed for all users is not named, because the caller may not see what it will offer.
   */
  listProblemOf(caller: Caller): string | undefined {
    const { connections } = this.#deps
    const problems = this.#servers.flatMap(({ config: { name }, perUser }) => {
      const why = perUser?.whyUnknown(caller)
      if (!why) return []
      const missing = connections?.missingOf(name, caller)
      return `The server ${name} cannot list for you now: ${why.message}. ${missing ? (missing.suggestion ?? '') : 'Try again later.'}`.trim()
    })
    const unlisted = this.#unlisted()
    if (unlisted) problems.push(UNLISTED[unlisted])
    return problems.length === 0 ? undefined : problems.join(' ')
  }

  /** Returns the state of the servers that have never listed for all users. `undefined`: all have. */
  #unlisted(): keyof typeof UNLISTED | undefined {
    let found: 'down' | undefined
    for (const { source, upstream, perUser } of this.#servers) {
      if (perUser?.lists || source.isListed()) continue
      const { status, reason } = upstream.state
      if (status === 'starting') return reason === undefined ? 'starting' : 'downloading'
      if (status === 'down') found = 'down'
    }
    return found
  }

  /** Returns the server of an item if it has never listed for all users, and is starting or down. */
  unlistedServer(name: string): Pick<ServerRow, 'status' | 'reason'> | undefined {
    const server = this.#byName.get(name)
    if (!server || server.perUser?.lists || server.source.isListed()) return undefined
    const { status, reason } = server.upstream.state
    return { status, ...(reason === undefined ? {} : { reason: this.#deps.redact.redactText(reason) }) }
  }

  /**
   * Waits until the lists that only this caller has are known or have timed out. `undefined`: there is nothing to wait
   * for. `isList`: the request asks for a list.
   */
  prepare(caller: Caller, isList: boolean): Promise<unknown> | undefined {
    const waits = this.#servers.flatMap(({ perUser }) => (perUser?.lists && perUser.prepare(caller, isList)) ?? [])
    return waits.length === 0 ? undefined : Promise.all(waits)
  }

  /** Waits for the first lists of servers with `waitForStart`. `undefined`: there is nothing to wait for. */
  firstLists(): Promise<unknown> | undefined {
    const waits = this.#servers.flatMap(({ config, source, upstream, perUser }) => {
      const isLate = config.waitForStart === true && !perUser?.lists && !source.isListed()
      if (!isLate || upstream.state.status !== 'starting') return []
      return [endsWithin(upstream.start(), config.startTimeoutMs)]
    })
    return waits.length === 0 ? undefined : Promise.all(waits)
  }

  /** Whether a call of this server needs an instance of its caller. Without a name: whether any server does. */
  needsInstance(name?: string): boolean {
    if (name !== undefined) return this.#byName.get(name)?.perUser?.needsInstances === true
    return this.#servers.some(({ perUser }) => perUser?.needsInstances === true)
  }

  /** Whether at least one server has a list per user. */
  get hasUserLists(): boolean {
    return this.#servers.some(({ perUser }) => perUser?.lists !== undefined)
  }

  /** Reserves places for calls in the instances of their callers. */
  readonly admission: Admission & { isNeeded: boolean } = {
    isNeeded: false,
    admit: ({ namespace = '' }, caller) => this.#byName.get(namespace)?.perUser?.admit(caller),
  }

  /**
   * Prepares the servers of another configuration, beside the current ones. A server with an unchanged entry stays, and
   * a server with an unchanged process keeps its process. Nothing changes until `commit`.
   */
  stage(servers: readonly ServerConfig[]): StagedFleet {
    const next = servers.map((config) => {
      const before = this.#byName.get(config.name)
      const isSame = before && isDeepStrictEqual(toComparable(before.config), toComparable(config))
      return isSame ? before : this.#create(config, before)
    })
    const before = this.#servers
    const kept = new Set(next.map(({ upstream }) => upstream))
    const known = new Set(before.map(({ upstream }) => upstream))
    return {
      upstreams: next.map(({ upstream }) => upstream),
      sources: next.map(({ source }) => source),
      commit: () => {
        this.#servers = next
        this.#byName = byName(next)
        this.admission.isNeeded = this.needsInstance()
        return {
          started: next.flatMap(({ upstream }) => (known.has(upstream) ? [] : [upstream])),
          retired: before.flatMap(({ upstream, running }) => (kept.has(upstream) ? [] : [{ upstream, running }])),
        }
      },
    }
  }

  #create(config: ServerConfig, before: Server | undefined): Server {
    const isSame = before !== undefined && isSameProcess(before.config, config)
    const { upstream, perUser, running } = isSame ? before : this.#open(config)
    const asks = new ServerAsks({ ...this.#deps.asks, server: config })
    const source = toSource(config, upstream, { asks, running }, perUser?.lists)
    return { config, upstream, perUser, running, source }
  }

  get upstreams(): readonly Upstream[] {
    return this.#servers.map(({ upstream }) => upstream)
  }

  /** Returns the server of an implicit group; `undefined` for any other group. */
  serverOfGroup(group: string): Upstream | undefined {
    return this.#servers.find(({ config }) => serverGroupName(config.name) === group)?.upstream
  }

  get sources(): readonly UpstreamSource[] {
    return this.#servers.map(({ source }) => source)
  }

  /** Cancels a server's task that no call continues. Never rejects. */
  async cancelTask(server: string, state: string, caller: Caller): Promise<void> {
    const found = this.#servers.find(({ config }) => config.name === server)
    if (found) await cancelTask(found.upstream, state, caller)
  }

  /** Each server with its instructions. */
  get instructing(): readonly InstructingServer[] {
    return this.#servers.map(({ config: { name, instructions: configured }, upstream, perUser }) => ({
      name,
      configured,
      own: (caller) => (perUser?.lists ? perUser.listOf(caller)?.state : upstream.state)?.instructions,
    }))
  }

  /** Each server with the data of its identity. A server that waits for values has none to compare. */
  get watched(): readonly WatchedServer[] {
    const complete = this.#servers.filter(({ config }) => !config.absent)
    return complete.map(({ config, upstream, perUser }) => ({
      config,
      get state() {
        return upstream.state
      },
      subscribe: (listener) => upstream.subscribe(listener),
      subscribeInstances: (listener) => perUser?.subscribeInstances(listener) ?? (() => {}),
    }))
  }

  /** Sets the function that returns the latest identity change for each server's row. */
  showChanges(changeOf: (name: string) => ServerRow['changed'] | undefined): void {
    this.#changeOf = changeOf
  }

  /** Returns the rows of the API. */
  rows(): readonly ServerRow[] {
    return this.#servers.map((server) => {
      const changed = this.#changeOf(server.config.name)
      return redactServer({ ...toServerRow(server), ...(changed ? { changed } : {}) }, this.#deps.redact)
    })
  }

  /** Returns what a server may ask clients for, in words. */
  mayOf(name: string): readonly string[] {
    return mayWords(this.#byName.get(name)?.config.may)
  }

  /** Returns a listed item with this id that is not offered, or that is offered without one of its parts. */
  rejected(id: string): RejectedItem | undefined {
    const [first = '', second = ''] = id.split(':', 2)
    const server = this.#byName.get(isItemId(id) ? second : first)
    return server && findRejected(server.config.name, server.source.rejected, id)
  }

  /** Restarts a server, or all its instances. Does nothing for an unknown name. */
  async restart(name: string): Promise<void> {
    const server = this.#byName.get(name)
    if (!server) throw new Error(`no server is named ${name}`)
    await server.upstream.restart()
  }

  /** Asks a server for the possible values of an argument of its prompt or template. */
  async complete(name: string, params: JsonObject, call: CallContext): Promise<JsonObject> {
    const server = this.#servers.find(({ config }) => config.name === name)
    if (!server) throw new Error(`no server is named ${name}`)
    const { caller, onProgress } = call
    return server.upstream.call({ method: 'completion/complete', params, caller, signal: call, onProgress })
  }

  /** Calls the listener after each announced change of a server's resource, until the returned function is called. */
  async watchResource(name: string, uri: string, { caller }: CallContext, listener: () => void): Promise<() => void> {
    const server = this.#servers.find(({ config }) => config.name === name)
    if (!server) throw new Error(`no server is named ${name}`)
    return server.upstream.watch(uri, caller, listener)
  }

  async close(): Promise<void> {
    await Promise.all(this.#servers.map(({ upstream }) => upstream.close()))
    await this.reaper.close()
  }
}

/** What a caller is told while a server has never listed. */
const UNLISTED = {
  starting: 'Something may be missing, because a server is still starting. List again in a moment.',
  downloading:
    'Something may be missing, because a server downloads packages for its first start. List again in a minute.',
  down: 'Something may be missing, because a server is down.',
} as const

/** Returns the source of a server; for a server with a list per user, one source for each user. */
function toSource(
  config: ServerConfig,
  upstream: Upstream,
  ofCalls: CallParts,
  lists: UserLists | undefined,
): UpstreamSource {
  const { name } = upstream
  const call = (asked: UpstreamCall) => upstream.call(asked)
  const openList = (list: UserList) =>
    new UpstreamSource(
      config,
      {
        name,
        call,
        get state() {
          return list.state
        },
        get items() {
          return list.items
        },
      },
      ofCalls,
    )
  return new UpstreamSource(config, upstream, ofCalls, lists && new UserSources(lists, openList))
}

function toServerConnections(
  config: ServerConfig,
  connections: FleetDeps['connections'],
): ServerConnections | undefined {
  if (!config.oauth || !connections) return undefined
  return {
    credentialOf: (user) => connections.credentialOf(config, user),
    missingOf: (caller) => connections.missingOf(config.name, caller),
  }
}

function toServerRow({ config, upstream: { name, state }, source, perUser }: Server): ServerRow {
  const may = mayWords(config.may)
  return {
    name,
    status: state.status,
    ...(state.reason === undefined ? {} : { reason: state.reason }),
    ...(config.absent && { waitsFor: config.absent.map(({ path: at }) => at) }),
    since: state.since,
    restarts: state.restarts,
    toolCount: Array.from(source.tools()).filter(({ kind }) => kind === 'tool').length,
    ...(state.era === undefined ? {} : { era: state.era }),
    ...(may.length === 0 ? {} : { may }),
    rejected: source.rejected,
    ...(perUser?.lists ? { listing: 'user' as const } : {}),
    ...(perUser?.needsInstances ? { instances: toInstances(perUser.instances) } : {}),
  }
}

function toInstances(rows: readonly InstanceInfo[]): ServerInstances {
  const users = rows.map(({ user, tenant, state }) => ({ user, ...(tenant === undefined ? {} : { tenant }), state }))
  return { ...countStates(rows), users }
}
