import { ToolgateError } from '@toolgate/core'
import type { GatewayConfig, LogLine, RunningGateway, startGateway } from '@toolgate/gateway'
import { CliError, type ExitName } from '../exit.ts'
import { type Io, painter, printable, printLine, type Stream } from '../io.ts'
import type { StopSignals } from '../stop-signals.ts'

export type StartGateway = typeof startGateway

export interface RunOptions {
  readonly io: Io
  readonly signals: StopSignals
  readonly start: StartGateway
  /** How to choose another port, where this one is taken. */
  readonly portHint: string
  /** Called once every server has answered or failed its first start. */
  readonly onReady: (gateway: RunningGateway) => Promise<void>
}

/** After the running calls, everything stops within this time, or is killed. */
const STOP_MS = 2000
/** As the gateway has it where the configuration says nothing. */
const DEFAULT_DRAIN_MS = 30_000
/** Whoever waits longer is told why. */
const QUIET_STOP_MS = 500

/** Runs a gateway until a signal asks to stop. @throws {CliError} `port` */
export async function runGateway(config: GatewayConfig, options: RunOptions): Promise<ExitName> {
  const { stderr } = options.io
  const onHangup = () => printLine(stderr, 'SIGHUP is ignored: the configuration is read at the start only.')
  const { stopped, release } = options.signals.once({ onHangup })
  try {
    const gateway = await open(config, options)
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
    release()
  }
}

/** Returns `false` where not everything stopped in time. */
async function close(
  gateway: RunningGateway,
  { drainMs = DEFAULT_DRAIN_MS }: GatewayConfig,
  stderr: Stream,
): Promise<boolean> {
  const closed = gateway.close()
  if (await endsWithin(closed, Math.min(QUIET_STOP_MS, drainMs))) return true
  if (drainMs > QUIET_STOP_MS)
    printLine(stderr, `Running calls have ${drainMs / 1000} s to end. A second Ctrl-C or SIGTERM stops at once.`)
  if (await endsWithin(closed, drainMs + STOP_MS)) return true
  printLine(stderr, `Not everything had stopped after ${(drainMs + STOP_MS) / 1000} s; the rest is killed.`)
  return false
}

async function open(config: GatewayConfig, { io, start, portHint }: RunOptions): Promise<RunningGateway> {
  const { host, port } = config.listen
  try {
    return await start(config, { log: (line) => printLog(line, io) })
  } catch (cause) {
    if (cause instanceof ToolgateError && cause.code === 'port_taken')
      throw new CliError('port', cause.message, { hint: portHint, cause })
    const { code } = cause as NodeJS.ErrnoException
    if (code === 'EACCES' || code === 'EADDRNOTAVAIL')
      throw new CliError('port', `Port ${port} on ${host} cannot be used (${code}).`, { hint: portHint, cause })
    throw cause
  }
}

function printLog({ level, message, server, detail }: LogLine, io: Io): void {
  if (level === 'debug' || level === 'info') return
  const paint = painter(io.stderr, io.env)
  const parts = [
    server && `${server}:`,
    printable(message),
    detail && `(${printable(detail.split('\n', 1)[0] as string)})`,
  ]
  printLine(io.stderr, `${paint(level === 'warn' ? 'yellow' : 'red', level)}  ${parts.filter(Boolean).join(' ')}`)
}

function endsWithin(work: Promise<void>, ms: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms, false)
    work.then(() => resolve(true), reject).finally(() => clearTimeout(timer))
  })
}
