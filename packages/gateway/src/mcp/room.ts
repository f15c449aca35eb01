import { LIST_NAMES } from '@toolgate/mcp'
import { endsWithin } from '@toolgate/values'
import { DecisionWaits } from '../calls/decision-waits.ts'
import { createRounds } from '../calls/rounds.ts'
import { IDLE_MS, Sessions } from '../calls/sessions.ts'
import { StoredSessions } from '../calls/stored-sessions.ts'
import { VERSION } from '../files.ts'
import type { Heart } from '../heart/heart.ts'
import type { OpenedRooms, Room } from '../heart/room.ts'
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
import type { Capabilities } from './methods.ts'
import { ClientQuestions } from './questions.ts'
import { resources } from './resources/start.ts'
import { tasks } from './tasks/start.ts'

const LIST_TTL_MS = 1000
const SERVER_INFO = { name: 'toolgate', version: VERSION }

/** Serves MCP: the sessions, rounds and streams of clients in both eras, and the methods of the rooms. */
export const mcp: Room<McpEndpoints> = {
  name: 'mcp',
  needs: [resources, tasks],
  open(heart, rooms) {
    const { revisions, gate, onFault } = heart
    const capabilities: Capabilities = (client) => ({ tools: { listChanged: true }, ...rooms.capabilities(client) })
    const offers = () => {
      const declared = capabilities({ era: 'modern' })
      return LIST_NAMES.filter((list) => declared[list] !== undefined)
    }
    const streams = new ChangeStreams({ serverInfo: SERVER_INFO, onFault, offers })
    const elsewhere = openElsewhere(heart, () => sessions)
    const stored = elsewhere ? undefined : openStored(heart)
    const sessions = new Sessions({
      clock: heart.clock,
      keeper: elsewhere?.sessions ?? stored,
      locks: gate.locks,
      onFault,
    })
    const waits = new DecisionWaits({ gate, isStopping: () => heart.door.stopping.isStopping })
    const endpoints = openEndpoints(heart, rooms, { waits, capabilities, streams, elsewhere, sessions, stored })
    revisions.onEnded(({ ended, replaced }) => {
      sessions.endOf(ended)
      streams.endOf(replaced)
    })
    const help = 'Clients that listen for changes of their tool list.'
    return {
      service: endpoints,
      metrics: [() => gauge('toolgate_list_streams', help, streams.count)],
      renew: () => endpoints.renew(),
      async drain(ms) {
        waits.stop()
        streams.close()
        await endsWithin(Promise.all([gate.idle(), elsewhere?.handOver(ms)]), ms)
      },
      endStreams: () => streams.close(),
      close() {
        waits.close()
        endpoints.close()
        elsewhere?.close()
      },
    }
  },
}

/** Returns the sessions that are stored for the next process. Without a store that outlives this one, there are none. */
function openStored({ stores: { kept }, clock, onFault }: Heart): StoredSessions | undefined {
  return kept && new StoredSessions({ state: kept, clock, keptMs: IDLE_MS, onFault })
}

/** Returns the forwarding of requests to other replicas. */
function openElsewhere(
  { replica, servers: { fleet }, catalog, door }: Heart,
  sessions: () => Sessions,
): Elsewhere | undefined {
  return replica?.open({
    sessions,
    instances: () => fleet.instances,
    needsInstance: (method, params) => needsInstance(fleet, catalog.lists.names(), method, params),
    addresses: door.addresses,
    isStopping: () => door.stopping.isStopping,
  })
}

interface EndpointParts {
  readonly waits: DecisionWaits
  readonly capabilities: Capabilities
  readonly streams: ChangeStreams
  readonly elsewhere: Elsewhere | undefined
  readonly sessions: Sessions
  readonly stored: StoredSessions | undefined
}

function openEndpoints(
  heart: Heart,
  rooms: OpenedRooms,
  { streams, elsewhere, waits, ...parts }: EndpointParts,
): McpEndpoints {
  const { config, clock, gate, catalog, servers, door, onFault } = heart
  const { lists, items, availability } = catalog
  const { fleet, via, tracing } = servers
  const { authenticator, origins, logins } = door
  return new McpEndpoints({
    gate,
    texts: { own: config.instructions, servers: openInstructions(heart) },
    rounds: openRounds(heart, { streams, elsewhere, waits }),
    methods: () => rooms.methods(),
    tasks: rooms.ask(tasks),
    resources: rooms.ask(resources),
    lists,
    items,
    hasUserLists: () => fleet.hasUserLists,
    prepare: (caller, isList) => fleet.prepare(caller, isList),
    firstLists: () => fleet.firstLists(),
    listProblemOf: (caller) => fleet.listProblemOf(caller),
    availability,
    streams,
    elsewhere,
    ...parts,
    keepAlive: createKeepAlive(),
    held: new HeldStreams({ clock }),
    questions: new ClientQuestions(),
    stopping: door.stopping,
    serverInfo: SERVER_INFO,
    listTtlMs: LIST_TTL_MS,
    authenticator,
    via,
    logins,
    origins,
    tracing,
    onFault,
  })
}

function openRounds(
  { gate, clock, stores, door, revisions, servers: { held, fleet } }: Heart,
  { streams, elsewhere, waits }: Pick<EndpointParts, 'streams' | 'elsewhere' | 'waits'>,
): ReturnType<typeof createRounds> {
  return createRounds({
    gate,
    clock,
    state: stores.state,
    publicUrl: door.publicUrl,
    isStopping: () => door.stopping.isStopping,
    waits,
    holdMs: () => revisions.current.asking.wait?.ms ?? 0,
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
