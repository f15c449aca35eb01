import { endsWithin } from '@toolgate/values'
import type { Rules } from '../auth/revision.ts'
import { callerAt, toResource } from '../auth/credential.ts'
import { createRounds } from '../calls/rounds.ts'
import { Sessions } from '../calls/sessions.ts'
import { createTasks, type GatewayTasks } from '../calls/tasks/create-tasks.ts'
import type { TaskOwner } from '../calls/tasks/task.ts'
import { VERSION } from '../files.ts'
import type { Heart } from '../heart/heart.ts'
import type { Room } from '../heart/room.ts'
import { withLists } from '../heart/views.ts'
import { ownerOf } from '../model/owner.ts'
import { type Offer, OFFERS } from '../model/upstream.ts'
import type { Elsewhere } from '../replicas/elsewhere.ts'
import { needsInstance } from '../replicas/needs-instance.ts'
import { heldIn } from '../servers/asks/held-calls.ts'
import { isTaskState } from '../servers/asks/upstream-tasks.ts'
import { Instructions } from '../servers/catalog/instructions.ts'
import { gauge } from '../telemetry/exposition.ts'
import { createKeepAlive } from './answer-stream.ts'
import { ChangeStreams } from './change-streams.ts'
import { McpEndpoints } from './endpoint.ts'
import { HeldStreams } from './held-streams.ts'
import type { ServerCapabilities } from './methods.ts'
import { Questions } from './questions.ts'

const LIST_TTL_MS = 1000
const SERVER_INFO = { name: 'toolgate', version: VERSION }

/** Serves MCP: the sessions, rounds, tasks and streams of clients in both eras. */
export const mcp: Room<McpEndpoints> = {
  name: 'mcp',
  open(heart) {
    const { revisions, gate, onFault } = heart
    const offers = revisions.derive((rules) => [...new Set(['tools' as const, ...offersOf(rules)])])
    const streams = new ChangeStreams({ serverInfo: SERVER_INFO, onFault, offers })
    const tasks = openTasks(heart)
    const elsewhere = openElsewhere(heart, () => sessions)
    const sessions = new Sessions({ clock: heart.clock, keeper: elsewhere?.sessions })
    const endpoints = openEndpoints(heart, { streams, tasks, elsewhere, sessions })
    revisions.onEnded(({ ended, replaced }) => {
      sessions.endOf(ended)
      streams.endOf(replaced)
    })
    const help = 'Clients that listen for changes of their tool list.'
    return {
      service: endpoints,
      metrics: [() => gauge('toolgate_list_streams', help, streams.count)],
      renew: () => endpoints.renew(served(revisions.current)),
      started: () => tasks.resume(),
      async drain(ms) {
        streams.close()
        await endsWithin(Promise.all([tasks.leave(), gate.idle(), elsewhere?.handOver(ms)]), ms)
      },
      endStreams: () => streams.close(),
      close() {
        endpoints.close()
        elsewhere?.close()
      },
    }
  },
}

function openTasks(heart: Heart): GatewayTasks {
  const { gate, stores, clock, catalog, servers, door, replica, onFault } = heart
  const { fleet } = servers
  const { authenticator, runs } = door
  return createTasks({
    state: stores.kept,
    audit: stores.audit,
    clock,
    gate: withLists(heart),
    names: catalog.lists,
    callerOf: ({ client }: TaskOwner, app: string | undefined) => {
      const isServed = app === undefined || gate.apps.list.some(({ name }) => name === app)
      return isServed ? callerAt(authenticator.current(client), toResource(app)) : undefined
    },
    readOwner: ({ client }) => (authenticator.current(client) ? undefined : runs.load(client)),
    cancelUpstream: (server, task, caller) => fleet.cancelTask(server, task, caller),
    isHere: async (server, caller) => {
      const owner = fleet.needsInstance(server) ? ownerOf(caller) : undefined
      return owner === undefined || (await replica?.elsewhere()?.homes.isHere(owner)) !== false
    },
    onFault,
  })
}

/** Returns the forwarding of requests to other replicas. */
function openElsewhere(
  { replica, servers: { fleet }, catalog, door, stopping }: Heart,
  sessions: () => Sessions,
): Elsewhere | undefined {
  return replica?.open({
    sessions,
    instances: () => fleet.instances,
    needsInstance: (method, params) => needsInstance(fleet, catalog.lists.names(), method, params),
    addresses: door.addresses,
    isStopping: () => stopping.isStopping,
  })
}

interface EndpointParts {
  readonly streams: ChangeStreams
  readonly tasks: GatewayTasks
  readonly elsewhere: Elsewhere | undefined
  readonly sessions: Sessions
}

function openEndpoints(heart: Heart, { streams, tasks, elsewhere, sessions }: EndpointParts): McpEndpoints {
  const { config, revisions, clock, gate, catalog, servers, door, stopping, onFault } = heart
  const { lists, items, owners, availability } = catalog
  const { fleet, via, tracing } = servers
  const { authenticator, origins, logins } = door
  const { offers, capabilities, hasUserLists } = served(revisions.current)
  return new McpEndpoints({
    gate,
    texts: { own: config.instructions, servers: openInstructions(heart) },
    rounds: openRounds(heart, streams, elsewhere),
    tasks: tasks.tasks,
    runsTasks: (server) =>
      fleet.upstreams.some(({ name, state: { tasks: hasTasks } }) => hasTasks === true && (server ?? name) === name),
    approvalTasks: tasks.approvalTasks,
    lists,
    items: {
      offers,
      names: lists,
      lists: items,
      owners,
      complete: (server, params, call) => fleet.complete(server, params, call),
      watchResource: (server, uri, call, listener) => fleet.watchResource(server, uri, call, listener),
    },
    hasUserLists,
    prepare: (caller, isList) => fleet.prepare(caller, isList),
    listProblemOf: (caller) => fleet.listProblemOf(caller),
    availability,
    streams,
    sessions,
    elsewhere,
    keepAlive: createKeepAlive(),
    held: new HeldStreams({ clock }),
    questions: new Questions(),
    stopping,
    serverInfo: SERVER_INFO,
    listTtlMs: LIST_TTL_MS,
    capabilities,
    authenticator,
    via,
    logins,
    origins,
    tracing,
    onFault,
  })
}

function openRounds(
  { gate, clock, stores, door, stopping, servers: { held, fleet } }: Heart,
  streams: ChangeStreams,
  elsewhere: Elsewhere | undefined,
): ReturnType<typeof createRounds> {
  return createRounds({
    gate,
    clock,
    state: stores.state,
    publicUrl: door.publicUrl,
    isStopping: () => stopping.isStopping,
    holder: elsewhere?.self,
    notify: (session, method, params) => streams.notify(session, method, params),
    cancelWaiting: (waiting, server, caller, why) => {
      const id = heldIn(waiting)
      if (id !== undefined) held.cancel(id, why)
      if (isTaskState(waiting) && server !== undefined) void fleet.cancelTask(server, waiting, caller)
    },
  })
}

function openInstructions({ gate, config, servers: { fleet, connections }, log }: Heart): Instructions {
  return new Instructions({
    servers: () => fleet.instructing,
    catalogOf: (caller) => gate.catalog.of(caller),
    check: config.definitions ?? 'warn',
    missing: (caller) => connections.missing(caller),
    warn: (message, server) => log({ level: 'warn', message, server }),
  })
}

/** Returns the offers of all servers, the capabilities that the gateway declares to clients, and who has lists. */
function served(rules: Rules): {
  readonly offers: readonly Offer[]
  readonly capabilities: ServerCapabilities
  readonly hasUserLists: boolean
} {
  const hasUserLists = rules.servers.some(({ listing }) => listing === 'user')
  return { offers: offersOf(rules), capabilities: toCapabilities(rules), hasUserLists }
}

function offersOf({ servers }: Rules): readonly Offer[] {
  return OFFERS.filter((offer) => servers.some(({ offers }) => offers.includes(offer)))
}

function toCapabilities(rules: Rules): ServerCapabilities {
  const offers = offersOf(rules)
  const resources = offers.includes('resources')
  const prompts = offers.includes('prompts')
  return {
    tools: { listChanged: true },
    ...(resources && { resources: { subscribe: true, listChanged: true } }),
    ...(prompts && { prompts: { listChanged: true } }),
    ...((resources || prompts) && { completions: {} }),
    // Logging is declared only if a server may send log messages.
    ...(rules.servers.some(({ may }) => may?.log === true) && { logging: {} }),
  }
}
