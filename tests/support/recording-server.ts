import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text as readText } from 'node:stream/consumers'

type Args = Readonly<Record<string, unknown>>
type Result = Readonly<Record<string, unknown>>

/** A tool of the recording server. */
export interface RecordedTool {
  readonly name: string
  readonly description?: string
  readonly inputSchema?: object
  readonly annotations?: object
  /** Default: a text that says it ran. */
  readonly run?: (args: Args, call: { readonly signal: AbortSignal }) => Result | Promise<Result>
}

export interface RecordedMessage {
  readonly method: string
  readonly params: Readonly<Record<string, unknown>>
}

/** An upstream that writes down everything it is sent: the witness of what was passed on. */
export interface RecordingServer {
  readonly url: string
  readonly era: 'legacy' | 'modern'
  /** Every message since the start or the last `forget`, in order. */
  readonly messages: readonly RecordedMessage[]
  /** The calls among them. */
  calls(tool?: string): readonly RecordedMessage[]
  /** Calls that are cancelled: by notification before 2026-07-28, by going away since. */
  readonly cancelled: number
  /** Replaces the tools, and says so to a legacy client. */
  setTools(tools: readonly RecordedTool[]): void
  forget(): void
  close(): Promise<void>
}

/** Starts one on loopback. `modern` speaks MCP 2026-07-28 alone, `legacy` 2025-11-25. */
export async function startRecordingServer(
  tools: readonly RecordedTool[],
  { era = 'legacy', instructions }: { era?: RecordingServer['era']; instructions?: string } = {},
): Promise<RecordingServer> {
  let offered = tools
  let messages: RecordedMessage[] = []
  let cancelled = 0
  const listeners = new Set<ServerResponse>()
  const underWay = new Map<unknown, AbortController>()
  const modernFields = era === 'modern' ? { resultType: 'complete' } : {}

  const answer = async ({ id, method, params }: RecordedMessage & { id: unknown }, response: ServerResponse) => {
    const reply = (body: object) => {
      if (!response.destroyed) sendJson(response, 200, { jsonrpc: '2.0', id, ...body })
    }
    switch (`${era} ${method}`) {
      case 'legacy initialize':
        return reply({
          result: {
            protocolVersion: '2025-11-25',
            capabilities: { tools: { listChanged: true } },
            serverInfo: { name: 'recording', version: '1' },
            instructions,
          },
        })
      case 'modern server/discover':
        return reply({
          result: {
            supportedVersions: ['2026-07-28'],
            capabilities: { tools: {} },
            instructions,
            ttlMs: 60_000,
            cacheScope: 'private',
            ...modernFields,
          },
        })
      case 'legacy ping':
        return reply({ result: {} })
      case `${era} tools/list`:
        return reply({
          result: {
            tools: offered.map(({ run: _, ...tool }) => ({ inputSchema: { type: 'object' }, ...tool })),
            ...(era === 'modern' ? { ttlMs: 60_000, cacheScope: 'private' } : {}),
            ...modernFields,
          },
        })
      case `${era} tools/call`:
        return reply(await call(id, params, response))
      default:
        return sendJson(response, era === 'modern' ? 404 : 200, {
          jsonrpc: '2.0',
          id: id ?? null,
          error: { code: -32_601, message: 'Method not found' },
        })
    }
  }

  const call = async (id: unknown, { name, arguments: args }: RecordedMessage['params'], response: ServerResponse) => {
    const tool = offered.find((one) => one.name === name)
    if (!tool) return { error: { code: -32_602, message: `Unknown tool: ${String(name)}` } }
    const gone = new AbortController()
    underWay.set(id, gone)
    response.once('close', () => {
      if (response.writableFinished) return
      if (era === 'modern') cancelled++
      gone.abort()
    })
    try {
      const ran = { content: [{ type: 'text', text: `${tool.name} ran` }] }
      const result = (await tool.run?.((args ?? {}) as Args, { signal: gone.signal })) ?? ran
      return { result: { ...result, ...modernFields } }
    } catch {
      return { result: { content: [{ type: 'text', text: 'it was stopped' }], isError: true, ...modernFields } }
    } finally {
      underWay.delete(id)
    }
  }

  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    if (request.method === 'GET' && era === 'legacy') {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
      listeners.add(response)
      response.once('close', () => listeners.delete(response))
      return
    }
    if (request.method !== 'POST') return void response.writeHead(405).end()
    const {
      id,
      method,
      params = {},
    } = JSON.parse(await readText(request)) as Partial<RecordedMessage> & { id?: unknown; method: string }
    messages.push({ method, params })
    if (method === 'notifications/cancelled') {
      cancelled++
      underWay.get(params['requestId'])?.abort()
    }
    if (id === undefined) return void response.writeHead(202).end()
    await answer({ id, method, params }, response)
  }

  const server = createServer((request, response) => {
    serve(request, response).catch(() => response.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    era,
    get messages() {
      return messages
    },
    get cancelled() {
      return cancelled
    },
    calls: (tool) =>
      messages.filter(({ method, params }) => method === 'tools/call' && (tool ?? params['name']) === params['name']),
    setTools(next) {
      offered = next
      const changed = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' })
      for (const listener of listeners) listener.write(`data: ${changed}\n\n`)
    },
    forget() {
      messages = []
      cancelled = 0
    },
    close() {
      server.closeAllConnections()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}

function sendJson(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}
