import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type GatewayConfig, loadConfig, type RunningGateway } from '@toolgate/gateway'
import { CliError, type ExitName } from '../exit.ts'
import { painter, printLine } from '../io.ts'
import { findPort } from '../port.ts'
import { renderWelcome, type Seen } from '../render/welcome.ts'
import { runGateway } from './run-gateway.ts'
import { nextPort, type ServeDeps } from './serve.ts'

export interface TryOptions {
  readonly port?: string
}

/** In a clone of the repository, and in the published package. */
const QUICKSTARTS = ['../../../../examples/quickstart/toolgate.yaml', '../../quickstart/toolgate.yaml']

/** `toolgate try`: the quickstart, with real servers and demo keys, until it is stopped. */
export async function tryCommand(options: TryOptions, deps: ServeDeps): Promise<ExitName> {
  const { io } = deps
  const port = findPort(options.port, io.env)
  const config = loadConfig(findQuickstart(), { env: io.env, packagesFrom: [import.meta.filename] })
  const listen = { ...config.listen, ...(port === undefined ? {} : { port }) }
  const next = nextPort(listen.port)
  printLine(
    io.stdout,
    painter(io.stdout, io.env)('dim', `Starting ${config.servers.map(({ name }) => name).join(', ')} …`),
  )
  return runGateway(
    { ...config, listen },
    {
      ...deps,
      portHint: `Choose another: npm start -- --port ${next}, or PORT=${next} npm start, or toolgate try --port ${next}.`,
      onReady: async (gateway) => {
        const text = renderWelcome({
          url: gateway.url,
          config,
          seen: await whatIsSeen(config, gateway),
          servers: gateway.servers(),
          groups: gateway.groups(),
          paint: painter(io.stdout, io.env),
          columns: io.stdout.columns,
        })
        printLine(io.stdout, text)
      },
    },
  )
}

/** Gives the path of the quickstart's configuration. @throws {CliError} `usage` */
export function findQuickstart(): string {
  const found = QUICKSTARTS.map((file) => fileURLToPath(new URL(file, import.meta.url))).find((file) =>
    existsSync(file),
  )
  if (found === undefined)
    throw new CliError('usage', 'The quickstart is not part of this installation.', {
      hint: 'Use "toolgate serve --config <file>".',
    })
  return found
}

/** Asks the gate itself, so that what is printed is what each key is shown. */
function whatIsSeen(config: GatewayConfig, { gate }: RunningGateway): Promise<readonly Seen[]> {
  return Promise.all(
    config.callers.map(async ({ caller, demoKey = '', for: use }) => ({
      user: caller.user ?? '',
      key: demoKey,
      for: use,
      tools: use === 'mcp' ? (await gate.view(caller)).ids : [],
    })),
  )
}
