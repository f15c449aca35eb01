import type { Gate } from '@toolgate/core'
import type { AvailabilitySource } from '@toolgate/core/groups'
import type { ChangeStreams } from './change-streams.ts'
import { createMcpEndpoint, createNowhere, type EndpointDeps, type McpEndpoint } from './endpoint.ts'
import { createListWatch, type ListWatch } from './list-watch.ts'
import type { Offers } from './offer.ts'

export interface AppEndpointsDeps extends EndpointDeps {
  readonly gate: Pick<Gate, 'apps' | 'catalog' | 'locks' | 'subscribe' | 'view'>
  readonly streams: ChangeStreams
  readonly offers: Offers
  readonly availability: Pick<AvailabilitySource, 'subscribe'>
}

/** What is served at `/mcp/<app>`. */
export interface AppEndpoints {
  /** Where no app has that name, it leads nowhere. */
  of(app: string): McpEndpoint
  /** Something changed that nobody else tells of: a session has opened a group. */
  changed(): void
  close(): void
}

/** Gives the endpoint of each app: the one of `/mcp`, over a gate whose every view is the app's. */
export function createAppEndpoints(deps: AppEndpointsDeps): AppEndpoints {
  const { streams, offers, availability, onFault } = deps
  const watches: ListWatch[] = []
  const endpoints = new Map<string, McpEndpoint>()
  const nowhere = createNowhere(deps)
  for (const { name, instructions } of deps.gate.apps.list) {
    const gate = gateOfApp(deps.gate, name)
    const watch = createListWatch({ gate, availability, offers, onFault })
    watches.push(watch)
    endpoints.set(name, createMcpEndpoint({ ...deps, gate, streams: streams.over(watch), instructions }))
  }
  return {
    of: (app) => endpoints.get(app) ?? nowhere,
    changed() {
      for (const watch of watches) watch.changed()
    },
    close() {
      for (const watch of watches) watch.close()
    },
  }
}

function gateOfApp(
  { catalog, locks, subscribe, view }: AppEndpointsDeps['gate'],
  app: string,
): Pick<Gate, 'catalog' | 'locks' | 'subscribe' | 'view'> {
  return { catalog, locks, subscribe, view: (caller, options) => view(caller, { ...options, app }) }
}
