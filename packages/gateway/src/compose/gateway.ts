import path from 'node:path'
import type { Gate } from '@toolgate/core'
import { checkShape, endsWithin, shapeOf } from '@toolgate/values'
import type { MaybePromise } from '@toolgate/core/internal'
import { parsePolicies } from '@toolgate/core/policy'
import { type Clock, memoryState, systemClock } from '@toolgate/core/stores'
import type { ApiDeps } from '../admin/http/deps.ts'
import type { GroupRow, ServerRow, WarningRow } from '../model/rows.ts'
import { type OpenedAuthenticator, openAuthenticator } from '../auth/open-authenticator.ts'
import { Keys } from '../auth/keys.ts'
import { Runs } from '../auth/runs.ts'
import { createOriginRules, isOwnUrl } from '../auth/origin.ts'
import type { GatewayConfig } from '../config/config.ts'
import { type LoadConfigOptions, readConfig } from '../config/load-config.ts'
import { isLoopback } from '../config/loopback.ts'
import { openQuestions } from './open-questions.ts'
import type { Reading } from '../admin/change/questions.ts'
import { checkUsable } from '../config/usable.ts'
import { CONSOLE_DIR } from '../files.ts'
import { type GatewayBase, openGate } from './gate-parts.ts'
import type { LogLine } from '../model/log-line.ts'
import { listen } from '../edge/server.ts'
import { Lifecycle } from '../util/lifecycle.ts'
import { createGatewayRedactor, redactLog } from '../config/redaction.ts'
import type { Reload } from '../model/reload.ts'
import type { OpenedReplica } from '../replicas/open-replica.ts'
import { FileWatch } from '../admin/reload/file-watch.ts'
import { Reloader } from './reloader.ts'
import type { ReloadOptions } from '../admin/reload/describe.ts'
import { Revisions } from '../auth/revision.ts'
import { createMcp, type Entrance, toApiDeps, toHttpDeps, watchGateway } from './serving.ts'

export interface GatewayOptions {
  readonly clock?: Clock
  /** The folder of the built console. Default: beside this package. */
  readonly consoleDir?: string
  readonly log?: (line: LogLine) => void
  /** A secret with which it proves at `/healthz` which gateway it is, to programs that know the secret too. */
  readonly identity?: Uint8Array
  /** Reads the configuration again, for a reload; `text` in place of that of its file. Default: its file. */
  readonly read?: (text?: string, how?: Pick<LoadConfigOptions, 'mayRun'>) => MaybePromise<GatewayConfig>
  /** How texts are read that people propose for its file. Default: as by `readConfig` without options. */
  readonly reading?: Reading
  /** An upper bound of the `ttlMs` of all groups. */
  readonly probeEveryMs?: number
  /** With `watch: true`: how often the file is looked at. Default 1000. */
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

/** A gateway that listens. */
export interface RunningGateway {
  /** Such as `http://127.0.0.1:8787`. */
  readonly url: string
  readonly port: number
  readonly gate: Gate
  /** Resolves when every server has answered or failed its first start, and the probes have answered or had a second. */
  readonly ready: Promise<void>
  servers(): readonly ServerRow[]
  /** What is probably a mistake, in the file and in what its servers offer. */
  warnings(): readonly WarningRow[]
  groups(): readonly GroupRow[]
  /**
   * Reads the configuration again and replaces policy, callers, limits, groups, apps and servers as one, or nothing.
   *
   * @throws {ConfigFileError} with every problem of the file, and nothing has changed
   * @throws {ConfigError} where the rules cannot be used
   */
  reload(
    options?: Pick<ReloadOptions, 'by' | 'isDryRun' | 'publishes' | 'isForced' | 'preview'> & {
      readonly through?: ReloadOptions['through']
    },
  ): Promise<Reload>
  /**
   * Refuses new calls and waits up to `drainMs` for running ones. Then closes the port, stops the servers and writes the
   * rest of the audit, within 2 s.
   */
  close(): Promise<void>
}

/** How long a starting gateway waits for its probes. A group whose probe is later is unknown until then. */
const FIRST_ASK_MS = 1000

/**
 * Starts a gateway: its port first, then its servers. It answers as soon as it listens. Tools of a server
 * that is still starting are not listed yet.
 *
 * @throws {ToolgateError} `port_taken`
 * @throws {ConfigError} for an invalid policy, group or limit, and for a missing policy
 */
export async function startGateway(config: GatewayConfig, options: GatewayOptions = {}): Promise<RunningGateway> {
  checkShape('startGateway', options, OPTIONS)
  const { read = (text, how) => readConfig(config.file, { ...how, ...(text !== undefined && { text }) }) } = options
  checkUsable(config)
  if (config.stores === undefined) return start(config, { ...options, read }, undefined)
  const { openReplica } = await import('../replicas/open-replica.ts')
  const replica = await openReplica(config, { clock: options.clock ?? systemClock, read, ...toLog(config, options) })
  try {
    return await start(replica.config, { ...options, read: replica.read }, replica)
  } catch (error) {
    await replica.close()
    throw error
  }
}

function toLog(config: GatewayConfig, options: GatewayOptions): Pick<GatewayBase, 'redact' | 'log' | 'onFault'> {
  const redact = createGatewayRedactor(config)
  const log = redactLog(options.log ?? (() => {}), redact)
  return { redact, log, onFault: (error) => log({ level: 'error', message: 'a fault', detail: describe(error) }) }
}

type StartOptions = GatewayOptions & Required<Pick<GatewayOptions, 'read'>>

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
  const { port } = listener
  const lifecycle = new Lifecycle(() => listener.close(), onFault)
  const base: GatewayBase = {
    config,
    revisions,
    clock,
    redact,
    log,
    onFault,
    lifecycle,
    replica,
    report: replica?.report,
  }
  if (replica) lifecycle.onClose(replica.close)
  try {
    const publicUrl = config.publicUrl ?? (isLoopback(config.listen.host) ? toUrl(config.listen, port) : undefined)
    const { oauth } = config
    const keys = new Keys({ revisions, clock, onFault })
    const runs = new Runs({ revisions, clock, keys, onFault })
    const opened = await openAuthenticator([keys, runs], { oauth, publicUrl, clock, log })
    const entrance = toEntrance(config, opened, { port, publicUrl, runs })
    const parts = await openGate(base, {
      probeEveryMs: options.probeEveryMs,
      onUnlocked: () => served.mcp.wake(),
      runs,
      publicUrl,
      isOwn: (origin) => isOwnUrl(new URL(origin), entrance.origins, port),
    })
    const state = parts.state ?? memoryState({ clock })
    await keys.open(state)
    await runs.open(state, parts.record)
    lifecycle.onClose(() => runs.close())
    lifecycle.onClose(() => keys.close())
    const watching = watchGateway(base, parts)
    const served = createMcp(base, parts, watching, entrance)
    const reloader = new Reloader({
      base,
      parts,
      read: (how) => options.read(undefined, how),
      replica,
      readCertificate: () => listener.readCertificate(),
      onReplaced: () => {
        keys.renew()
        runs.renew()
        watching.renew()
        served.renew()
      },
    })
    const shown = toApiDeps(base, parts, watching, entrance)
    const apiDeps: ApiDeps = {
      ...shown,
      warnings: () => [...toWaiting(reloader, config.file), ...(shown.warnings?.() ?? [])],
      reload: (how) => reloader.reload(how),
      reloadWaiting: () => reloader.waiting,
      changes: openQuestions(base, parts, options.reading),
      keys,
      runs: { runs, checkPolicy: (policy) => void parsePolicies(policy, parts.selectors()) },
    }
    if (config.watch) await watchFile(config.file, reloader, lifecycle, options.watchEveryMs)
    await replica?.follow({
      reload: (by) => reloader.reload({ by, through: 'publication' }),
      check: (proposed) => reloader.check(proposed),
      restart: (server) => parts.fleet.restart(server),
    })
    const { consoleDir = CONSOLE_DIR, identity } = options
    const certificateExpiresAtMs = () => listener.certificate?.expiresAtMs
    listener.attach({
      ...toHttpDeps(base, parts, watching, served, { apiDeps, consoleDir, certificateExpiresAtMs, entrance }),
      identity,
    })
    const { gate, fleet, probed, warnings } = parts
    const starting = fleet.upstreams.map((upstream) => upstream.start())
    return {
      url: toUrl(config.listen, port),
      port,
      gate,
      ready: Promise.all([endsWithin(probed, FIRST_ASK_MS), ...starting]).then(() => {
        served.tasks.resume()
        warnings.logNew()
      }),
      servers: watching.servers,
      warnings: () => apiDeps.warnings?.() ?? [],
      groups: watching.groups,
      reload: (how) => reloader.reload({ through: 'host', ...how }),
      close: lifecycle.close,
    }
  } catch (error) {
    await lifecycle.close()
    throw error
  }
}

function toWaiting({ waiting }: Reloader, file: string): readonly WarningRow[] {
  return waiting === undefined ? [] : [{ code: 'reload_waiting', path: path.basename(file), text: waiting }]
}

async function watchFile(
  file: string,
  reloader: Reloader,
  lifecycle: Lifecycle,
  everyMs: number | undefined,
): Promise<void> {
  const watch = new FileWatch(file, () => reloader.tighten())
  await watch.start(everyMs)
  lifecycle.onClose(() => watch.close())
}

function toUrl({ host, tls }: GatewayConfig['listen'], port: number): string {
  return `${tls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}`
}

function toEntrance(
  { listen: { host, tls, origins = [] }, publicUrl: written }: GatewayConfig,
  opened: OpenedAuthenticator,
  given: Pick<Entrance, 'port' | 'publicUrl' | 'runs'>,
): Entrance {
  const known = written === undefined ? origins : [...origins, written]
  return {
    ...opened,
    ...given,
    origins: createOriginRules({ host, port: given.port, isTls: tls !== undefined, origins: known }),
  }
}

function describe(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}
