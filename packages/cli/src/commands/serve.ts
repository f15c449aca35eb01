import { ToolgateError } from '@toolgate/core'
import { endsWithin, errnoOf, messageOf } from '@toolgate/values'
import {
  type GatewayConfig,
  type GatewayOptions,
  type LogLine,
  readConfig,
  type RunningGateway,
  type startGateway,
} from '@toolgate/gateway'
import { listenUrlOf } from '../address.ts'
import { firstConsoleHash } from '../project/console-keys.ts'
import { announce, newIdentity } from '../project/running-file.ts'
import { groupNotes, serverNotes } from '../notes.ts'
import { CliError, type ExitName } from '../exit.ts'
import { INSTALLED_FROM } from '../files.ts'
import { type Io, painter, printable, printLine, type Stream } from '../io.ts'
import { count } from '../render.ts'
import type { StopSignals } from '../stop-signals.ts'

export interface ServeOptions {
  readonly config: string
  readonly port?: string
}

export interface ServeDeps {
  readonly io: Io
  readonly signals: StopSignals
  readonly start: StartGateway
}

/** `toolgate serve`: runs the gateway of a configuration until it is stopped. */
export async function serveCommand(options: ServeOptions, deps: ServeDeps): Promise<ExitName> {
  const { io } = deps
  const port = findPort(options.port, io.env)
  const read = configReader(options.config, port, io)
  const config = await read()
  const { listen } = config
  return runGateway(config, {
    ...deps,
    read,
    announcedAt: options.config,
    portHint: `Choose another: --port ${nextPort(listen.port)}, PORT=${nextPort(listen.port)}, or "listen" in ${options.config}.`,
    onReady: async (gateway) => printReady(gateway, io),
  })
}

/** Returns a function that reads a configuration and sets the port from the command line. */
export function configReader(file: string, port: number | undefined, { env }: Io): NonNullable<GatewayOptions['read']> {
  return async (text, how) => {
    const from = { env, packagesFrom: [INSTALLED_FROM], ...(text !== undefined && { text }) }
    const config = await readConfig(file, { ...from, ...how })
    return { ...config, listen: { ...config.listen, ...(port === undefined ? {} : { port }) } }
  }
}

/** Starts the gateway of a configuration without serving, storing or recording anything. */
export function startUnseen(given: GatewayConfig, start: StartGateway): Promise<RunningGateway> {
  const { warnings: _w, stores: _s, replica: _r, ...config } = given
  return start({
    ...config,
    listen: { host: '127.0.0.1', port: 0 },
    audit: { store: 'memory', mode: 'batched' },
    state: { store: 'memory' },
    drainMs: 0,
  })
}

/** Returns another port to suggest if one is taken. */
export function nextPort(port: number): number {
  return port < 65_535 ? port + 1 : port - 1
}

function printReady(gateway: RunningGateway, io: Io): void {
  const paint = painter(io.stdout, io.env)
  const tools = gateway.gate.catalog.snapshot().size
  printLine(
    io.stdout,
    `${paint('green', 'ready')}  ${gateway.url}/mcp  ${count(tools, 'tool')} of ${count(gateway.servers().length, 'server')}`,
  )
  printLine(io.stdout, `       ${gateway.url}/     console`)
  for (const note of [...serverNotes(gateway.servers()), ...groupNotes(gateway.groups())])
    printLine(io.stdout, `  ${note}`)
}

export type StartGateway = typeof startGateway

interface ServeRunOptions {
  readonly io: Io
  readonly signals: StopSignals
  readonly start: StartGateway
  /** A hint about how to choose another port if this one is taken. */
  readonly portHint: string
  /** Reads the configuration again, on SIGHUP. Absent if there is no file. */
  readonly read?: GatewayOptions['read']
  /** The path of the configuration beside which the gateway writes its address. */
  readonly announcedAt?: string
  /** Called once every server has answered or failed its first start. */
  readonly onReady: (gateway: RunningGateway) => Promise<void>
}

/** After running calls have ended, everything stops within this time, in milliseconds, or is killed. */
const STOP_MS = 2000
/** The gateway's default. */
const DEFAULT_DRAIN_MS = 30_000
/** A stop that takes longer prints the reason. */
const QUIET_STOP_MS = 500

/** Runs a gateway until a signal stops it. @throws {CliError} `port` */
export async function runGateway(config: GatewayConfig, options: ServeRunOptions): Promise<ExitName> {
  const { stderr } = options.io
  let running: RunningGateway | undefined
  const onHangup = () => {
    if (options.read === undefined) printLine(stderr, 'SIGHUP is ignored: there is no file to read again.')
    else if (running === undefined) printLine(stderr, 'SIGHUP is ignored: the gateway is starting.')
    else void reload(running, options.io)
  }
  const { stopped, release } = options.signals.once({ onHangup })
  const { announcedAt } = options
  const secret = announcedAt === undefined ? undefined : newIdentity()
  let withdraw = () => {}
  try {
    const gateway = (running = await open(config, options, secret))
    if (secret && announcedAt !== undefined)
      withdraw = announce(announcedAt, {
        url: listenUrlOf({ ...config.listen, port: gateway.port }),
        secret,
        pid: process.pid,
        consoleHash: firstConsoleHash(config),
      })
    let exit: ExitName = 'ok'
    try {
      const isReady = await Promise.race([gateway.ready.then(() => true), stopped.then(() => false)])
      if (isReady) await options.onReady(gateway)
      await stopped
    } finally {
      if (!(await close(gateway, config, stderr))) exit = 'no'
    }
    return exit
  } finally {
    withdraw()
    release()
  }
}

/** Prints the changes of a reload, or why it failed. */
async function reload(gateway: RunningGateway, { stdout, stderr }: Io): Promise<void> {
  try {
    const { text } = await gateway.reload({ through: 'signal' })
    for (const line of [`${logTime()}  reloaded`, ...text]) printLine(stdout, printable(line))
  } catch (error) {
    printLine(stderr, `${logTime()}  Nothing was reloaded:`)
    for (const line of messageOf(error).split('\n')) printLine(stderr, printable(line))
  }
}

/** Closes the gateway. Returns `false` if something did not stop in time. */
async function close(
  gateway: RunningGateway,
  { drainMs = DEFAULT_DRAIN_MS }: GatewayConfig,
  stderr: Stream,
): Promise<boolean> {
  const closed = gateway.close()
  if (await endsWithin(closed, Math.min(QUIET_STOP_MS, drainMs))) return true
  if (drainMs > QUIET_STOP_MS)
    printLine(
      stderr,
      `${logTime()}  Running calls have ${drainMs / 1000} s to end. A second Ctrl-C or SIGTERM stops at once.`,
    )
  if (await endsWithin(closed, drainMs + STOP_MS)) return true
  printLine(stderr, `Not everything had stopped after ${(drainMs + STOP_MS) / 1000} s; the rest is killed.`)
  return false
}

async function open(
  config: GatewayConfig,
  { io, start, portHint, read }: ServeRunOptions,
  identity: Buffer | undefined,
): Promise<RunningGateway> {
  const { host, port } = config.listen
  try {
    return await start(config, {
      log: (line) => printLog(line, io),
      ...(read && { read, reading: { env: io.env, packagesFrom: [INSTALLED_FROM] } }),
      ...(identity && { identity }),
    })
  } catch (cause) {
    if (cause instanceof ToolgateError && cause.code === 'port_taken')
      throw new CliError('port', cause.message, { hint: portHint, cause })
    const code = errnoOf(cause)
    if (code === 'EACCES' || code === 'EADDRNOTAVAIL')
      throw new CliError('port', `Port ${port} on ${host} cannot be used (${code}).`, { hint: portHint, cause })
    throw cause
  }
}

/** Returns the time of a log line: RFC 3339, to the second. */
function logTime(): string {
  return `${new Date().toISOString().slice(0, 19)}Z`
}

function printLog({ level, message, server, user, detail }: LogLine, io: Io): void {
  if (level === 'debug' || level === 'info') return
  const paint = painter(io.stderr, io.env)
  const whose = user === undefined ? '' : ` of ${printable(user)}`
  const parts = [
    server && `${server}${whose}:`,
    printable(message),
    detail && `(${printable(detail.split('\n', 1)[0] ?? '')})`,
  ]
  const colour = level === 'warn' ? 'yellow' : 'red'
  printLine(io.stderr, `${logTime()}  ${paint(colour, level)}  ${parts.filter(Boolean).join(' ')}`)
}

/**
 * Returns the port of `--port`, or else of PORT, if either is set.
 *
 * @throws {CliError} `usage` for an invalid port, with its origin
 */
export function findPort(option: string | undefined, env: Io['env']): number | undefined {
  if (option !== undefined) return parsePort('--port', option)
  return env['PORT'] ? parsePort('PORT', env['PORT']) : undefined
}

function parsePort(origin: string, text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN
  if (port <= 65_535) return port
  throw new CliError(
    'usage',
    `${origin} is ${JSON.stringify(text)}, which is not a port: a whole number from 0 (any free one) to 65535.`,
  )
}
