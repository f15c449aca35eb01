import type { Redactor } from '@toolgate/core/redact'
import type { Clock } from '@toolgate/core/stores'
import type { ServerRow } from './api/wire.ts'
import { UpstreamSource } from './catalog/sources.ts'
import type { GatewayConfig, ServerConfig } from './config/config.ts'
import type { WatchedServer } from './live/server-identity.ts'
import { withVia } from './mcp/endpoint.ts'
import type { InstructingServer } from './mcp/instructions.ts'
import { redactServer } from './redaction.ts'
import type { FindTracing } from './telemetry/tracing.ts'
import { createUpstream, type UpstreamLogLine } from './upstream/create-upstream.ts'
import { createReaper, type Reaper } from './upstream/reaper.ts'
import type { Upstream } from './upstream/upstream.ts'

export interface FleetDeps {
  readonly clock: Clock
  readonly log: (line: UpstreamLogLine) => void
  readonly redact: Redactor
  readonly tracing: FindTracing
}

interface Server {
  readonly config: ServerConfig
  readonly upstream: Upstream
  readonly source: UpstreamSource
}

/** The servers of a configuration, in its order. */
export class Fleet {
  readonly reaper: Reaper = createReaper()
  readonly #servers: readonly Server[]
  readonly #redact: Redactor

  /** `via` identifies the requests of this gateway, so that it does not serve itself. */
  constructor({ servers }: GatewayConfig, via: string, deps: FleetDeps) {
    this.#redact = deps.redact
    this.#servers = servers.map((config) => {
      const upstream = createUpstream(withVia(config, via), { reaper: this.reaper, ...deps })
      return { config, upstream, source: new UpstreamSource(config, upstream) }
    })
  }

  get upstreams(): readonly Upstream[] {
    return this.#servers.map(({ upstream }) => upstream)
  }

  get sources(): readonly UpstreamSource[] {
    return this.#servers.map(({ source }) => source)
  }

  /** Each server with its instructions. */
  get instructing(): readonly InstructingServer[] {
    return this.#servers.map(({ config: { name, instructions: configured }, upstream }) => ({
      name,
      configured,
      own: () => upstream.state.instructions,
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

  async close(): Promise<void> {
    await Promise.all(this.#servers.map(({ upstream }) => upstream.close()))
    await this.reaper.close()
  }
}

function toServerRow({ upstream: { name, state }, source }: Server): ServerRow {
  return {
    name,
    status: state.status,
    ...(state.reason === undefined ? {} : { reason: state.reason }),
    since: state.since,
    restarts: state.restarts,
    toolCount: Array.from(source.tools()).filter(({ kind }) => kind === 'tool').length,
    ...(state.era === undefined ? {} : { era: state.era }),
    rejected: [...state.rejected, ...source.rejected],
  }
}
