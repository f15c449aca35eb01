import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { send } from '../../support/http.ts'
import { type Era, MODERN, type Params, type RpcAnswer, toMessage } from '../../support/rpc.ts'

/** A way to a server, with one JSON-RPC answer for each request: bytes as they came, which no client has looked at. */
export interface Door {
  ask(method: string, params?: Params): Promise<RpcAnswer>
  close(): Promise<void>
}

/** How a server is started on stdio. */
export interface Started {
  readonly command: string
  readonly args: readonly string[]
  readonly cwd: string
  readonly env?: Readonly<Record<string, string>>
}

/** What servers that ask their client get. A ping is answered. */
const NOT_SERVED = { code: -32_601, message: 'Method not found' }
const CLIENT = { capabilities: {}, clientInfo: { name: 'test', version: '1' } }

/** Starts a server on stdio and, in an earlier revision, begins with `initialize`. */
export async function openStdio({ command, args, cwd, env }: Started, era: Era): Promise<Door> {
  const child = spawn(command, args, { cwd, env: { ...process.env, ...env }, stdio: ['pipe', 'pipe', 'pipe'] })
  const waiting = new Map<unknown, { resolve(answer: RpcAnswer): void; reject(error: Error): void }>()
  let printed = ''
  child.stderr.on('data', (chunk: Buffer) => (printed += chunk.toString()))
  const fail = (reason: string) => {
    for (const { reject } of waiting.values()) reject(new Error(`${command} ${args.join(' ')} ${reason}:\n${printed}`))
    waiting.clear()
  }
  child.once('error', ({ message }) => fail(message))
  child.once('exit', (code) => fail(`ended with ${code}`))
  child.stdin.on('error', () => undefined)
  createInterface({ input: child.stdout }).on('line', (line) => {
    // Some servers greet on stdout.
    if (!line.startsWith('{')) return
    const answer = JSON.parse(line) as RpcAnswer & { readonly method?: string }
    if (answer.method !== undefined) {
      const { id, method } = answer
      if (id !== undefined)
        write({ jsonrpc: '2.0', id, ...(method === 'ping' ? { result: {} } : { error: NOT_SERVED }) })
      return
    }
    waiting.get(answer.id)?.resolve(answer)
    waiting.delete(answer.id)
  })
  let last = 0
  const write = (message: object) => child.stdin.write(`${JSON.stringify(message)}\n`)
  const ask: Door['ask'] = (method, params) =>
    new Promise((resolve, reject) => {
      const { body } = toMessage(era, method, params, ++last)
      waiting.set(last, { resolve, reject })
      write(body)
    })
  if (era !== MODERN) {
    await ask('initialize', { protocolVersion: era, ...CLIENT })
    write({ jsonrpc: '2.0', method: 'notifications/initialized' })
  }
  return {
    ask,
    async close() {
      if (child.exitCode !== null || child.signalCode !== null) return
      const ended = once(child, 'exit')
      child.stdin.end()
      child.kill()
      await ended
    },
  }
}

/** Opens a way over Streamable HTTP, with a session where an earlier revision gives one. */
export async function openHttp(url: string, era: Era, given: Readonly<Record<string, string>> = {}): Promise<Door> {
  let more = given
  let last = 0
  const ask: Door['ask'] = async (method, params) => {
    const { headers, body } = toMessage(era, method, params, ++last)
    const answer = await send(url, { headers: { ...headers, ...more }, body: JSON.stringify(body) })
    if (!/^[[{]|^(event|id|data|retry|:)/.test(answer.text.trim()))
      throw new Error(`${method}: ${answer.status} ${answer.text}`)
    const session = answer.headers['mcp-session-id']
    if (method === 'initialize' && typeof session === 'string') more = { ...given, 'mcp-session-id': session }
    return answer.json() as RpcAnswer
  }
  if (era !== MODERN) {
    await ask('initialize', { protocolVersion: era, ...CLIENT })
    const { headers, body } = toMessage(era, 'notifications/initialized')
    await send(url, { headers: { ...headers, ...more }, body: JSON.stringify({ ...body, id: undefined }) })
  }
  return {
    ask,
    close: async () => {
      if (more['mcp-session-id'] !== undefined) await send(url, { method: 'DELETE', headers: more })
    },
  }
}
