import { createGate, type Gate, memoryAudit } from '@toolgate/core'
import { parseGroups } from '@toolgate/core/groups'
import { type Clock, memoryState, systemClock } from '@toolgate/core/stores'
import type { HttpApi } from '../admin/http/api.ts'
import { openPages } from '../compose/open-pages.ts'
import { authenticateKeys } from '../auth/keyring.ts'
import { Keys } from '../auth/keys.ts'
import { createOriginRules } from '../auth/origin.ts'
import { Revisions } from '../auth/revision.ts'
import { People } from '../auth/people.ts'
import { Runs } from '../auth/runs.ts'
import { ROOMS } from '../compose/rooms.ts'
import type { CallerConfig, GatewayConfig } from '../config/config.ts'
import { createGatewayRedactor } from '../config/redaction.ts'
import type { HeartCatalog, Door, Heart, Servers, Stores } from '../heart/heart.ts'
import type { ListedRoom } from '../heart/room.ts'
import { Rooms } from '../heart/rooms.ts'
import type { Warnings } from '../heart/warnings.ts'

/** The parts of a gateway that a test sets. */
export interface HeartParts {
  readonly gate?: Gate
  readonly callers?: readonly CallerConfig[]
  readonly config?: Partial<GatewayConfig>
  readonly clock?: Clock
  readonly audit?: object
  readonly stores?: Partial<Stores>
  readonly catalog?: Partial<HeartCatalog>
  readonly fleet?: object
  readonly servers?: Partial<Servers>
  readonly door?: Partial<Door>
  readonly warnings?: Partial<Warnings>
  /** Texts to redact. */
  readonly secrets?: readonly string[]
  readonly onFault?: (error: unknown) => void
}

/** Returns the heart of a gateway without servers, for a test's gate. */
export function heartOf(parts: HeartParts): Heart {
  const { gate = createGate({ tools: [] }), callers = [], clock = systemClock, onFault = () => {}, door = {} } = parts
  const config = { ...CONFIG, callers, ...parts.config } as GatewayConfig
  const revisions = new Revisions(config)
  const keys = new Keys({ revisions, clock, onFault })
  const { audit = memoryAudit() } = parts
  const heart = {
    config,
    revisions,
    clock,
    redact: createGatewayRedactor({ secrets: parts.secrets ?? [] }),
    log: () => {},
    onFault,
    stores: { audit, auditProblems: [], state: memoryState(), kept: undefined, ...parts.stores },
    gate,
    catalog: {
      lists: NAMES,
      ownIds: () => new Set(),
      selectors: () => parseGroups({}).selectors,
      warnings: { list: () => [], logNew: () => {}, logOfGate: () => {}, ...parts.warnings },
      ...parts.catalog,
    },
    servers: {
      fleet: {
        rows: () => [],
        listsOf: () => [],
        rejected: () => undefined,
        prepare: () => undefined,
        firstLists: () => undefined,
        listProblemOf: () => undefined,
        unlistedServer: () => undefined,
        mayOf: () => [],
        ...parts.fleet,
      },
      connections: { rowsOf: () => [] },
      ...parts.servers,
    },
    door: {
      stopping: { isLeaving: false, isStopping: false },
      authenticator: authenticateKeys(callers),
      origins: createOriginRules({ host: '127.0.0.1', port: 8787, origins: [] }),
      port: 8787,
      keys,
      runs: new Runs({ revisions, clock, keys, onFault }),
      people: new People({ clock, log: () => {} }),
      logins: { count: 0, failed: async () => {}, close: () => {} },
      issuers: () => [],
      refusedTokens: () => [],
      certificateExpiresAtMs: () => undefined,
      ...door,
    },
    host: { consoleDir: '' },
    replica: undefined,
  }
  // A test that needs more members passes them in `parts`.
  return heart as object as Heart
}

/** Returns a gate in which a test's members replace the gate's own. */
export function gateWith(gate: Gate, own: Partial<Gate>): Gate {
  return Object.create(gate, Object.getOwnPropertyDescriptors(own)) as Gate
}

/** Only the rooms of people. */
export const PEOPLE: readonly ListedRoom[] = ROOMS.flatMap(({ people }) => (people ? [{ people }] : []))

/** Returns the HTTP API of a heart, with the rooms of people, preceded by a test's own rooms. */
export function apiOf(heart: Heart, before: readonly ListedRoom[] = []): Pick<HttpApi, 'fetch'> {
  const open = async () => {
    const rooms = new Rooms([...before, ...PEOPLE], heart)
    await rooms.open()
    return openPages(rooms, heart, () => false)
  }
  const opened = open()
  return { fetch: async (request, from) => (await opened).fetch(request, from) }
}

const NAMES = nameFor((id) => id.replace(':', '__'))

/** Returns the names that clients know tools by. */
export function nameFor(toName: (id: string) => string): HeartCatalog['lists'] {
  const names = () => ({ toName })
  return { names, promptNames: names } as object as HeartCatalog['lists']
}

const CONFIG = {
  file: 'toolgate.yaml',
  audit: { store: 'memory' },
  listen: { host: '127.0.0.1', port: 8787 },
  policy: [],
  limits: [],
  groups: [],
  servers: [],
}
