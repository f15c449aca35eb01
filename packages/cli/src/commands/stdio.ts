import { hash, randomBytes } from 'node:crypto'
import type { Readable } from 'node:stream'
import type { GatewayConfig, LogLine } from '@toolgate/gateway'
import type { BridgeOutcome, ServeStdioOptions } from '@toolgate/gateway/stdio'
import { DEFAULT_URL, mcpUrlOf } from '../address.ts'
import { CliError, type ExitName } from '../exit.ts'
import { INSTALLED_FROM } from '../files.ts'
import { type Io, printable, printLine } from '../io.ts'
import { readRunning } from '../project/running-file.ts'
import { checkSendable } from '../usable-key.ts'
import type { ServeDeps } from './serve.ts'
import { nextCommand } from '../next-command.ts'

export interface StdioOptions {
  readonly url?: string
  readonly key?: string
  readonly config?: string
  readonly as?: string
  readonly app?: string
}

interface GatewayEndpoint extends Pick<ServeStdioOptions, 'url' | 'key' | 'hints'> {
  close(): Promise<void>
}

/**
 * `toolgate stdio`: MCP on stdin and stdout for one client, which starts this command and ends it.
 *
 * It connects to a running gateway. With `--config` it connects to the gateway that serves this configuration. If none
 * is running, the command runs its own gateway on a free port of this machine.
 */
export async function stdioCommand(
  options: StdioOptions,
  deps: ServeDeps,
  input: Readable = process.stdin,
): Promise<ExitName> {
  const { io, signals } = deps
  const { stopped, release } = signals.once()
  const stopping = new AbortController()
  void stopped.then(() => stopping.abort())
  const log = (text: string) => printLine(io.stderr, `toolgate: ${printable(text)}`)
  try {
    const endpoint =
      options.config === undefined ? runningGateway(options, io.env) : await ownGateway(options, deps, log)
    try {
      const { serveStdio } = await import('@toolgate/gateway/stdio')
      const { url, key, hints } = endpoint
      const { signal } = stopping
      const outcome = await serveStdio({ input, output: io.stdout, url, key, hints, log, signal })
      return signal.aborted ? 'ok' : EXITS_OF[outcome]
    } finally {
      await endpoint.close()
    }
  } finally {
    release()
  }
}

const EXITS_OF = { served: 'ok', refused: 'key', unreachable: 'unreachable' } as const satisfies Record<
  BridgeOutcome,
  ExitName
>

function runningGateway({ url, key, app }: StdioOptions, env: Io['env']): GatewayEndpoint {
  const given = url ?? (env['TOOLGATE_URL'] || undefined)
  const own = key ?? (env['TOOLGATE_KEY'] || undefined)
  if (own !== undefined) checkSendable({ key: own, from: key === undefined ? 'TOOLGATE_KEY' : '--key' })
  return {
    url: mcpUrlOf(given ?? DEFAULT_URL, app),
    key: own,
    hints: {
      start: `Start it with "${nextCommand('serve')}", or give another address with --url.`,
      key: "Give an agent's key with --key or TOOLGATE_KEY.",
    },
    close: async () => {},
  }
}

/** Servers that start within this time are in the first list. The others are announced later. */
const READY_MS = 15_000

async function ownGateway(
  { config: file = '', as, app }: StdioOptions,
  { io, start }: ServeDeps,
  log: (text: string) => void,
): Promise<GatewayEndpoint> {
  const [{ readConfig }, { endsWithin }] = await Promise.all([import('@toolgate/gateway'), import('@toolgate/values')])
  const config = await readConfig(file, { env: io.env, packagesFrom: [INSTALLED_FROM] })
  const agent = findCaller(config, as, file)
  const running = await findRunning(agent, file, app)
  if (running) return running
  const key = `tg_${randomBytes(32).toString('base64url')}`
  const caller = { ...agent, keyHash: hash('sha256', key, 'buffer'), for: 'mcp' as const }
  const gateway = await start(
    {
      ...config,
      // The port of the configuration belongs to the gateway that "toolgate serve" runs.
      listen: { host: '127.0.0.1', port: 0 },
      callers: [...config.callers, caller],
      secrets: [...(config.secrets ?? []), key],
      drainMs: 0,
    },
    { log: (line) => printLog(line, log) },
  )
  await endsWithin(gateway.ready, READY_MS)
  log(`a gateway of ${file} for ${caller.caller.user ?? 'this client'} runs at ${gateway.url}/`)
  return { url: mcpUrlOf(gateway.url, app), key, hints: { start: '', key: '' }, close: () => gateway.close() }
}

/** The longest wait for an answer. A busy machine takes time; an unused port refuses at once. */
const ASK_MS = 5_000

/**
 * Returns the running gateway that serves the same configuration, if the caller's key is known here. The key is sent
 * only to that gateway, because another program may have taken the port.
 */
async function findRunning(
  { demoKey, caller: { user } }: StdioCaller,
  file: string,
  app: string | undefined,
): Promise<GatewayEndpoint | undefined> {
  const running = readRunning(file)
  if (running === undefined) return undefined
  const [{ readKeys }, { listensAt }] = await Promise.all([
    import('../project/keys-file.ts'),
    import('@toolgate/gateway/stdio'),
  ])
  const key = demoKey ?? readKeys(file).find((one) => one.user === user && one.for === 'mcp')?.key
  if (key === undefined || !(await listensAt(running.url, running.secret, ASK_MS))) return undefined
  const hints = { start: `Start it with "${nextCommand('serve', { config: file })}".`, key: '' }
  return { url: mcpUrlOf(running.url, app), key, hints, close: async () => {} }
}

type StdioCaller = GatewayConfig['callers'][number]

/** @throws {CliError} `usage` */
function findCaller({ callers }: GatewayConfig, as: string | undefined, file: string): StdioCaller {
  const agents = callers.filter((one) => one.for === 'mcp')
  const names = [...new Set(agents.map(({ caller }) => caller.user ?? ''))]
  const found = as === undefined ? agents[0] : agents.find(({ caller }) => caller.user === as)
  if (found && (as !== undefined || names.length === 1)) return found
  if (names.length === 0)
    throw new CliError('usage', `${file} has no caller for agents.`, { hint: 'Add one to "callers".' })
  const problem = as === undefined ? 'Name the caller with --as <user>.' : `No caller is named ${JSON.stringify(as)}.`
  throw new CliError('usage', problem, { hint: `${file} has: ${names.map(printable).join(', ')}.` })
}

function printLog({ level, message, server, detail }: LogLine, log: (text: string) => void): void {
  if (level === 'debug' || level === 'info') return
  const first = detail?.split('\n', 1)[0]
  log(`${level}: ${server === undefined ? '' : `${server}: `}${message}${first ? ` (${first})` : ''}`)
}
