import { existsSync } from 'node:fs'
import { isObject, type JsonObject, toJsonText } from '@toolgate/values/json'
import { nearestOf } from '@toolgate/values'
import type { StdioBridge } from '@toolgate/gateway/stdio'
import { DEFAULT_URL, mcpUrlOf } from '../address.ts'
import { CliError, type ExitName } from '../exit.ts'
import { readInput } from '../given.ts'
import { parseObject } from '../json.ts'
import { type Io, printable, printJson, printLine } from '../io.ts'
import type { StopSignals } from '../stop-signals.ts'
import { checkSendable } from '../usable-key.ts'
import { nextCommand, quoted } from '../next-command.ts'

export interface CallOptions {
  readonly input?: string
  readonly as?: string
  readonly app?: string
  readonly url?: string
  readonly key?: string
  readonly config?: string
  readonly json?: boolean
}

const DEFAULT_CONFIG = 'toolgate.yaml'
const REVISION = '2026-07-28'
const CLIENT = { name: 'toolgate call', version: '1' }
const MAX_PAGES = 100

/** `toolgate call <tool>`: calls a tool as an agent does, through the gateway. Ends with `no` if the call is refused or fails. */
export async function callCommand(
  tool: string,
  options: CallOptions,
  { io, signals }: { readonly io: Io; readonly signals: StopSignals },
): Promise<ExitName> {
  const input = await readInput(options.input)
  const { url, key } = await findEndpoint(options, io.env)
  const { StdioBridge: Bridge } = await import('@toolgate/gateway/stdio')
  const client = new CallClient(
    (write) => new Bridge({ url, key, write, log: () => {}, hints: hintsOf(options) }),
    (progress) => printLine(io.stderr, printable(progress)),
  )
  const { stopped, release } = signals.once()
  void stopped.then(() => client.close())
  try {
    const name = await findName(tool, client, options)
    const result = await client.ask('tools/call', { name, arguments: input })
    if (options.json) printJson(io.stdout, result)
    else printLine(io.stdout, printResult(result))
    return result['isError'] === true || result['resultType'] === 'input_required' ? 'no' : 'ok'
  } finally {
    release()
    await client.close()
  }
}

function hintsOf({ config }: CallOptions): { readonly start: string; readonly key: string } {
  return {
    start: `Start it with "${nextCommand('serve', { config })}", or give its address with --url.`,
    key: "Give an agent's key with --key, or name a user of the configuration with --as.",
  }
}

/** Returns the endpoint and the key. The key of `--as` is in the configuration or beside it. */
async function findEndpoint(
  { as, app, url, key, config }: CallOptions,
  env: Io['env'],
): Promise<{ readonly url: URL; readonly key: string | undefined }> {
  const address = url ?? (env['TOOLGATE_URL'] || undefined)
  const ownKey = key ?? (as === undefined ? env['TOOLGATE_KEY'] || undefined : undefined)
  const isElsewhere = address !== undefined || (config === undefined && !existsSync(DEFAULT_CONFIG))
  if (ownKey !== undefined) checkSendable({ key: ownKey, from: key === undefined ? 'TOOLGATE_KEY' : '--key' })
  if (ownKey !== undefined && isElsewhere) return { url: mcpUrlOf(address ?? DEFAULT_URL, app), key: ownKey }
  const [{ openConfig }, { findAgent, listenUrl, publicUrlOf }, { readRunning }, { unreachedBy }] = await Promise.all([
    import('../project/config-file.ts'),
    import('../project/callers.ts'),
    import('../project/running-file.ts'),
    import('../key-reach.ts'),
  ])
  const file = openConfig(config ?? DEFAULT_CONFIG)
  const own = readRunning(file.file)?.url ?? listenUrl(file)
  const endpoint = mcpUrlOf(address ?? own, app)
  const called = { url: endpoint.origin, isNamed: address !== undefined }
  const problem = unreachedBy({ isNamed: ownKey !== undefined }, called, [listenUrl(file), publicUrlOf(file)])
  if (problem !== undefined) throw new CliError('usage', `No key is sent to ${endpoint.origin}.`, { hint: problem })
  if (ownKey !== undefined) return { url: endpoint, key: ownKey }
  const agent = findAgent(file, as)
  if (agent.key === undefined)
    throw new CliError('usage', `The key of ${printable(agent.user)} is known by its hash only. Give it with --key.`)
  checkSendable({ key: agent.key, from: file.file })
  return { url: endpoint, key: agent.key }
}

/**
 * Returns a tool's wire name. The given name may also be its id.
 *
 * @throws {CliError} `no` for a tool that the caller does not see, with the nearest name
 */
async function findName(tool: string, client: CallClient, { as = '<user>', ...options }: CallOptions): Promise<string> {
  const names = await client.toolNames()
  const [namespace, name] = tool.includes(':') ? tool.split(/:(.*)/s) : [undefined, tool]
  const wanted = [tool, `${namespace}__${name}`, name]
  const found = wanted.find((one) => one !== undefined && names.includes(one))
  if (found !== undefined) return found
  const near = nearestOf(tool.replace(':', '__'), names)
  throw new CliError('no', `Tool ${JSON.stringify(tool)} is not available to this caller.`, {
    hint:
      near === undefined
        ? `Why: ${nextCommand(`why ${quoted(tool)} --as ${as === '<user>' ? as : quoted(as)}`, { config: options.config, url: options.url, app: options.app })}`
        : `Did you mean ${printable(near)}?`,
    code: 'tool_unknown',
  })
}

function printResult(result: JsonObject): string {
  if (result['resultType'] === 'input_required') return 'The server asks for input, which this command cannot give.'
  const content = Array.isArray(result['content']) ? result['content'].filter(isObject) : []
  const texts = content.map((part) =>
    part['type'] === 'text' && typeof part['text'] === 'string'
      ? part['text'].split('\n').map(printable).join('\n')
      : `[${printable(String(part['type']))}; --json shows it]`,
  )
  return texts.length > 0 ? texts.join('\n') : printable(toJsonText(result['structuredContent'] ?? {}))
}

/** A client of MCP 2026-07-28 that has no capabilities. */
class CallClient {
  readonly #bridge: StdioBridge
  readonly #pending = new Map<unknown, (message: JsonObject) => void>()
  readonly #onProgress: (text: string) => void
  #closed: Promise<void> | undefined
  #ids = 0

  constructor(open: (write: (text: string) => void) => StdioBridge, onProgress: (text: string) => void) {
    this.#onProgress = onProgress
    this.#bridge = open((text) => this.#read(text))
  }

  async toolNames(): Promise<readonly string[]> {
    const names: string[] = []
    let cursor: unknown
    for (let page = 0; page < MAX_PAGES; page++) {
      const result = await this.ask('tools/list', cursor === undefined ? {} : { cursor })
      const tools = Array.isArray(result['tools']) ? result['tools'].filter(isObject) : []
      names.push(...tools.map(({ name }) => String(name)))
      cursor = result['nextCursor']
      if (typeof cursor !== 'string') break
    }
    return names
  }

  /** @throws {CliError} for a JSON-RPC error */
  async ask(method: string, params: JsonObject): Promise<JsonObject> {
    const id = ++this.#ids
    const { promise, resolve } = Promise.withResolvers<JsonObject>()
    this.#pending.set(id, resolve)
    const meta = {
      'io.modelcontextprotocol/protocolVersion': REVISION,
      'io.modelcontextprotocol/clientInfo': CLIENT,
      'io.modelcontextprotocol/clientCapabilities': {},
      progressToken: id,
    }
    const line = toJsonText({ jsonrpc: '2.0', id, method, params: { ...params, _meta: meta } })
    this.#bridge.receive(Buffer.from(`${line}\n`))
    const { result, error } = await promise
    if (isObject(result)) return result
    const message = isObject(error) ? String(error['message']) : 'no answer'
    throw new CliError(EXITS_OF[this.#bridge.outcome], printable(message), { code: 'call_failed' })
  }

  close(): Promise<void> {
    for (const resolve of this.#pending.values()) resolve({ error: { message: 'The call was stopped.' } })
    return (this.#closed ??= this.#bridge.close())
  }

  #read(text: string): void {
    const message = parseObject(text) ?? {}
    const { id, method, params } = message
    if (method === undefined) {
      this.#pending.get(id)?.(message)
      this.#pending.delete(id)
    } else if (method === 'notifications/progress' && isObject(params)) {
      const { progress, total, message: said } = params
      const of = typeof total === 'number' ? `/${total}` : ''
      this.#onProgress(`${Number(progress)}${of}${typeof said === 'string' ? ` ${said}` : ''}`)
    }
  }
}

const EXITS_OF = { served: 'no', refused: 'key', unreachable: 'unreachable' } as const satisfies Record<
  StdioBridge['outcome'],
  ExitName
>
