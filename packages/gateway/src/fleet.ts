import type { Caller } from '@toolgate/core'
import path from 'node:path'
import type { CallContext } from '@toolgate/core'
import type { Admission, JsonObject } from '@toolgate/core/internal'
import type { Redactor } from '@toolgate/core/redact'
import type { Clock } from '@toolgate/core/stores'
import type { ListRow, ServerInstances, ServerRow } from './api/wire.ts'
import { serverGroupName } from './catalog/groups.ts'
import { UserSources } from './catalog/own-sources.ts'
import { UpstreamSource } from './catalog/sources.ts'
import type { GatewayConfig, ServerConfig } from './config/config.ts'
import type { WatchedServer } from './live/server-identity.ts'
import { withVia } from './mcp/endpoint.ts'
import type { InstructingServer } from './mcp/instructions.ts'
import { redactServer } from './redaction.ts'
import { ServerAsks, type ServerAsksOptions } from './relay/server-asks.ts'
import { cancelTask } from './tasks/upstream-tasks.ts'
import type { FindTracing } from './telemetry/tracing.ts'
import { createUpstream, type UpstreamLogLine } from './upstream/create-upstream.ts'
import { DEFAULT_INSTANCES, type InstanceRow, Instances } from './upstream/instances.ts'
import { ownerOf } from './upstream/owner.ts'
import { PerUserUpstream } from './upstream/per-user-upstream.ts'
import { createReaper, type Reaper } from './upstream/reaper.ts'
import type { Upstream, UpstreamCall } from './upstream/upstream.ts'
import type { UserList, UserLists } from './upstream/user-lists.ts'

export interface FleetDeps {
  readonly clock: Clock
  readonly log: (line: UpstreamLogLine) => void
  readonly redact: Redactor
  readonly tracing: FindTracing
  /** What holds for the requests of every server to clients. */
  readonly asks: Omit<ServerAsksOptions, 'server'>
}

interface Server {
  readonly config: ServerConfig
  readonly upstream: Upstream
  readonly source: UpstreamSource
  /** Absent for a server that all users share. */
  readonly perUser: PerUserUpstream | undefined
}

/** The servers of a configuration, in its order. */
export class Fleet {
  readonly reaper: Reaper = createReaper()
  readonly #servers: readonly Server[]
  readonly #redact: Redactor

  /** `via` identifies the requests of this gateway, so that it does not serve itself. */
  constructor(
    { file, instances: given = {} }: Pick<GatewayConfig, 'file' | 'instances'>,
    servers: readonly ServerConfig[],
    via: string,
    deps: FleetDeps,
  ) {
    this.#redact = deps.redact
    const { path: folder = path.join(path.dirname(file), '.toolgate/instances'), ...bounds } = given
    const own = { instances: new Instances({ ...DEFAULT_INSTANCES, ...bounds }), folder }
    const shared = { reaper: this.reaper, ...deps }
    this.#servers = servers.map((config) => {
      const sent = withVia(config, via)
      const perUser = config.per === 'user' ? new PerUserUpstream(sent, { ...shared, ...own }) : undefined
      const upstream = perUser ?? createUpstream(sent, shared)
      const asks = new ServerAsks({ ...deps.asks, server: config })
      return { config, upstream, perUser, source: toSource(config, upstream, asks, perUser?.lists) }
    })
  }

  /** Returns whose lists a caller sees, of the servers with a list for each user. */
  listsOf(caller: Caller): readonly ListRow[] {
    const owner = ownerOf(caller)
    return this.#servers.flatMap(({ config: { name }, perUser }): readonly ListRow[] => {
      if (!perUser?.lists) return []
      if (!owner) return [{ server: name, state: 'no_user' }]
      const { name: user, ofTenant: tenant } = owner
      const state = perUser.listOf(caller) ? 'known' : 'unknown'
      return [{ server: name, user, ...(tenant === undefined ? {} : { tenant }), state }]
    })
  }

  /**
   * Waits for the lists that a caller has alone, until they are known or have had their time. `undefined`: there is
   * nothing to wait for. `isList`: the request is for a list.
   */
  prepare(caller: Caller, isList: boolean): Promise<unknown> | undefined {
    const waits = this.#servers.flatMap(({ perUser }) => perUser?.prepare(caller, isList) ?? [])
    return waits.length === 0 ? undefined : Promise.all(waits)
  }

  /** Lets calls into the instances of their callers. `undefined` where all users share all servers. */
  get admission(): Admission | undefined {
    const servers = new Map(this.#servers.flatMap(({ config, perUser }) => (perUser ? [[config.name, perUser]] : [])))
    if (servers.size === 0) return undefined
    return { admit: ({ namespace = '' }, caller) => servers.get(namespace)?.admit(caller) }
  }

  get upstreams(): readonly Upstream[] {
    return this.#servers.map(({ upstream }) => upstream)
  }

  /** Returns the server of an implicit group, if it is one. */
  serverOfGroup(group: string): Upstream | undefined {
    return this.#servers.find(({ config }) => serverGroupName(config.name) === group)?.upstream
  }

  get sources(): readonly UpstreamSource[] {
    return this.#servers.map(({ source }) => source)
  }

  /** Cancels a task of a server that no call follows. Never rejects. */
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

  /** Each server with the data of its identity. */
  get watched(): readonly WatchedServer[] {
    return this.#servers.map(({ config, upstream }) => ({
      config,
      get state() {
        return upstream.state
      },
      subscribe: (listener) => upstream.subscribe(listener),
    }))
  }

  /** Returns the rows of the API. `changeOf` returns the latest change of a server's identity. */
  rows(changeOf: (name: string) => ServerRow['changed'] | undefined): readonly ServerRow[] {
    return this.#servers.map((server) => {
      const changed = changeOf(server.config.name)
      return redactServer({ ...toServerRow(server), ...(changed ? { changed } : {}) }, this.#redact)
    })
  }

  /** Asks a server for the values that an argument of its prompt or template may have. */
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

/** Returns the source of a server; where each user has their own list, with a source for each. */
function toSource(
  config: ServerConfig,
  upstream: Upstream,
  asks: ServerAsks,
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
      asks,
    )
  return new UpstreamSource(config, upstream, asks, lists && new UserSources(lists, openList))
}

function toServerRow({ upstream: { name, state }, source, perUser }: Server): ServerRow {
  return {
    name,
    status: state.status,
    ...(state.reason === undefined ? {} : { reason: state.reason }),
    since: state.since,
    restarts: state.restarts,
    toolCount: Array.from(source.tools()).filter(({ kind }) => kind === 'tool').length,
    ...(state.era === undefined ? {} : { era: state.era }),
    rejected: [...state.rejected, ...source.rejected],
    ...(perUser?.lists ? { listing: 'user' as const } : {}),
    ...(perUser?.needsInstances ? { instances: toInstances(perUser.instances) } : {}),
  }
}

function toInstances(rows: readonly InstanceRow[]): ServerInstances {
  const counts = { starting: 0, running: 0, idle: 0, down: 0 }
  for (const { state } of rows) counts[state]++
  return {
    ...counts,
    users: rows.map(({ user, tenant, state }) => ({ user, ...(tenant === undefined ? {} : { tenant }), state })),
  }
}
