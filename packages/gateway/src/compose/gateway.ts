import { checkShape, endsWithin, shapeOf } from '@toolgate/values'
import { ConfigError, type Gate } from '@toolgate/core'
import { type MaybePromise } from '@toolgate/core/internal'
import { type Clock, systemClock } from '@toolgate/core/stores'
import type { QuestionReading } from '../admin/change/questions.ts'
import { groups } from '../admin/groups/start.ts'
import type { ReloadOptions } from '../admin/reload/describe.ts'
import { reload } from '../admin/reload/start.ts'
import { Revisions } from '../auth/revision.ts'
import type { GatewayConfig } from '../config/config.ts'
import { type LoadConfigOptions, readConfig } from '../config/load-config.ts'
import { createGatewayRedactor, redactLog } from '../config/redaction.ts'
import { checkUsable } from '../config/usable.ts'
import { listen } from '../edge/server.ts'
import { CONSOLE_DIR } from '../files.ts'
import type { Heart } from '../heart/heart.ts'
import type { ListedRoom } from '../heart/room.ts'
import { Rooms } from '../heart/rooms.ts'
import { mcp } from '../mcp/room.ts'
import type { LogLine } from '../model/log-line.ts'
import type { Reload } from '../model/reload.ts'
import type { GroupRow, ServerRow, WarningRow } from '../model/rows.ts'
import type { OpenedReplica } from '../replicas/open-replica.ts'
import { Lifecycle } from '../util/lifecycle.ts'
import { openDoor, toUrl } from './door.ts'
import { type HeartServices, type OpenedHeart, openHeart } from './open-heart.ts'
import { toHttpDeps } from './port.ts'
import { ROOMS } from './rooms.ts'

export interface GatewayOptions {
  readonly clock?: Clock
  /** The folder of the built console. Default: beside this package. */
  readonly consoleDir?: string
  readonly log?: (line: LogLine) => void
  /** A secret with which the gateway proves its identity at `/healthz` to programs that know the secret too. */
  readonly identity?: Uint8Array
  /** Reads the configuration again, for a reload. `text` replaces the text of the file. Default: reads its file. */
  readonly read?: (text?: string, how?: Pick<LoadConfigOptions, 'mayRun'>) => MaybePromise<GatewayConfig>
  /** How to read a text that people propose for the file. Default: as `readConfig` does without options. */
  readonly reading?: QuestionReading
  /** An upper bound of the `ttlMs` of all groups. */
  readonly probeEveryMs?: number
  /** With `watch: true`: how often the file is checked, in milliseconds. Default 1000. */
  readonly watchEveryMs?: number
}

const OPTIONS = shapeOf<GatewayOptions>({
  clock: true,
  consoleDir: true,
  log: true,
  identity: true,
  read: true,
  reading: true,
  probeEveryMs: true,
  watchEveryMs: true,
})

/** A running gateway. */
export interface RunningGateway {
  /** The URL of the gateway, such as `http://127.0.0.1:8787`. */
  readonly url: string
  readonly port: number
  readonly gate: Gate
  /**
   * Resolves when the first start of every server has succeeded or failed, and every probe has answered or 1 s has
   * passed.
   */
  readonly ready: Promise<void>
  servers(): readonly ServerRow[]
  /** Likely mistakes in the file, and in the items that its servers offer. */
  warnings(): readonly WarningRow[]
  groups(): readonly GroupRow[]
  /**
   * Reads the configuration again and replaces policy, callers, limits, groups, apps and servers all at once.
   *
   * @throws {ConfigFileError} with every problem of the file; nothing changes
   * @throws {ConfigError} for rules that cannot be used; nothing changes
   */
  reload(
    options?: Pick<ReloadOptions, 'by' | 'isDryRun' | 'publishes' | 'isForced' | 'preview'> & {
      readonly through?: ReloadOptions['through']
    },
  ): Promise<Reload>
  /**
   * Refuses new calls and waits up to `drainMs` for running ones. Then it closes the port, stops the servers and,
   * within 2 s, writes the rest of the audit.
   */
  close(): Promise<void>
}

/** How long a starting gateway waits for its probes. A group with a slower probe is unknown until it answers. */
const FIRST_ASK_MS = 1000
/** How long running calls may continue when the gateway stops. */
const DEFAULT_DRAIN_MS = 30_000

/**
 * Starts a gateway: its port first, then its servers. It answers as soon as it listens. Tools of a server
 * that is still starting are not listed yet.
 *
 * @throws {ToolgateError} `port_taken`
 * @throws {ConfigError} for an invalid policy, group or limit, and for a missing policy
 */
export async function startGateway(config: GatewayConfig, options: GatewayOptions = {}): Promise<RunningGateway> {
  checkShape('startGateway', options, OPTIONS)
  return startWith(ROOMS, config, options)
}

/** Starts a gateway with only these rooms. */
export async function startWith(
  listed: readonly ListedRoom[],
  config: GatewayConfig,
  options: GatewayOptions,
): Promise<RunningGateway> {
  const { read = (text, how) => readConfig(config.file, { ...how, ...(text !== undefined && { text }) }) } = options
  checkUsable(config)
  if (config.stores === undefined) return start(config, { ...options, read, listed }, undefined)
  const { openReplica } = await import('../replicas/open-replica.ts')
  const replica = await openReplica(config, {
    clock: options.clock ?? systemClock,
    read: async (...given) => read(...given),
    ...toLog(config, options),
  })
  try {
    return await start(replica.config, { ...options, read: replica.read, listed }, replica)
  } catch (error) {
    await replica.close()
    throw error
  }
}

function toLog(config: GatewayConfig, options: GatewayOptions): Pick<Heart, 'redact' | 'log' | 'onFault'> {
  const redact = createGatewayRedactor(config)
  const log = redactLog(options.log ?? (() => {}), redact)
  return { redact, log, onFault: (error) => log({ level: 'error', message: 'a fault', detail: describe(error) }) }
}

type StartOptions = GatewayOptions & Required<Pick<GatewayOptions, 'read'>> & { readonly listed: readonly ListedRoom[] }

async function start(
  config: GatewayConfig,
  options: StartOptions,
  replica: OpenedReplica | undefined,
): Promise<RunningGateway> {
  const { clock = systemClock } = options
  const { redact, log, onFault } = toLog(config, options)
  checkUsable(config)
  const revisions = new Revisions(config, onFault)
  const listener = await listen(config.listen)
  const lifecycle = new Lifecycle(() => listener.close(), onFault)
  if (replica) lifecycle.onClose(replica.close)
  const known: HeartServices = { config, revisions, clock, redact, log, onFault, replica, lifecycle }
  try {
    const opened = await openRooms(known, options, listener)
    listener.attach(toHttpDeps(opened.rooms, opened.heart, options.identity))
    return toRunning(opened, lifecycle)
  } catch (error) {
    await lifecycle.close()
    throw error
  }
}

interface Opened extends OpenedHeart {
  readonly rooms: Rooms
}

/** Opens the heart and the rooms. They close with the gateway. */
async function openRooms(
  known: HeartServices,
  options: StartOptions,
  listener: Awaited<ReturnType<typeof listen>>,
): Promise<Opened> {
  const { config, lifecycle } = known
  const { consoleDir = CONSOLE_DIR, reading, watchEveryMs, probeEveryMs } = options
  let rooms: Rooms | undefined
  const { heart, probed } = await openHeart(known, {
    door: await openDoor(config, known, listener),
    host: { consoleDir, reading, watchEveryMs },
    read: async ({ text, ...how } = {}) => options.read(text, how),
    readCertificate: () => listener.readCertificate(),
    probeEveryMs,
    onUnlocked: (caller) => rooms?.ask(mcp)?.unlocked(caller),
    onGateClosed: async () => rooms?.settle(),
  })
  const opened = (rooms = new Rooms(options.listed, heart))
  lifecycle.onClose(() => opened.close())
  lifecycle.onAnnounce(() => opened.announce())
  lifecycle.onDrain(() => opened.drain(config.drainMs ?? DEFAULT_DRAIN_MS))
  await opened.open()
  return { heart, probed, rooms: opened }
}

/** Starts the servers, and returns the running gateway. */
function toRunning({ heart, probed, rooms }: Opened, { close }: Lifecycle): RunningGateway {
  const { config, gate, servers, door } = heart
  const { fleet } = servers
  const starting = fleet.upstreams.map((upstream) => upstream.start())
  return {
    url: toUrl(config.listen, door.port),
    port: door.port,
    gate,
    ready: Promise.all([endsWithin(probed, FIRST_ASK_MS), ...starting]).then(() => rooms.started()),
    servers: () => fleet.rows(),
    warnings: () => rooms.warnings(),
    groups: () => rooms.ask(groups)?.rows() ?? [],
    async reload(how) {
      const reloader = rooms.ask(reload)
      if (!reloader) throw new ConfigError('reload', 'is not possible here')
      return reloader.reload({ through: 'host', ...how })
    },
    close,
  }
}

function describe(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}
