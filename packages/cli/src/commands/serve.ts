import { loadConfig, type RunningGateway } from '@toolgate/gateway'
import type { ExitName } from '../exit.ts'
import { type Io, painter, printLine } from '../io.ts'
import { findPort } from '../port.ts'
import { count } from '../render/words.ts'
import type { StopSignals } from '../stop-signals.ts'
import { runGateway, type StartGateway } from './run-gateway.ts'
import { groupNotes, serverNotes } from './tools.ts'

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
  const config = loadConfig(options.config, { env: io.env, packagesFrom: [import.meta.filename] })
  const port = findPort(options.port, io.env)
  const listen = { ...config.listen, ...(port === undefined ? {} : { port }) }
  return runGateway(
    { ...config, listen },
    {
      ...deps,
      portHint: `Choose another: --port ${nextPort(listen.port)}, PORT=${nextPort(listen.port)}, or "listen" in ${options.config}.`,
      onReady: async (gateway) => printReady(gateway, io),
    },
  )
}

/** A port to try instead of one that is taken. */
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
