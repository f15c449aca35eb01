import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { FullAnswer, ModelRequest, ModelWire, ScriptedAnswer } from './model-wire.ts'
import { openAiChatWire } from './openai-chat-wire.ts'

/** Returns the answer to a request. `index` counts the requests from 0. */
type Script = (request: ModelRequest, index: number) => ScriptedAnswer | Promise<ScriptedAnswer>

export interface ModelServer {
  /** The URL without a path: `http://127.0.0.1:49152`. */
  readonly url: string
  /** All requests, oldest first. */
  readonly requests: readonly ModelRequest[]
  /** Returns the number of open connections. */
  connections(): Promise<number>
  close(): Promise<void>
}

/** The APIs. The path of a request selects one. */
const WIRES: readonly ModelWire[] = [openAiChatWire]

/**
 * Starts a server that answers like a model provider, on a real socket, from a script: answers in order, or a function of
 * the request. A request beyond the script gets status 500.
 *
 * @example
 * const server = await startModelServer([{ calls: [{ name: 'search' }] }, { text: 'found' }])
 * const model = createOpenAICompatible({ name: 'test', baseURL: `${server.url}/v1` }).chatModel('scripted')
 */
export async function startModelServer(script: Script | readonly ScriptedAnswer[]): Promise<ModelServer> {
  const requests: ModelRequest[] = []
  const answerOf: Script = typeof script === 'function' ? script : (_, index) => script[index] ?? BEYOND
  const server = createServer((incoming, outgoing) => {
    void answer(incoming, outgoing, { requests, answerOf }).catch((error: unknown) => outgoing.destroy(error as Error))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    connections: () =>
      new Promise((resolve, reject) =>
        server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
      ),
    async close() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

const BEYOND: ScriptedAnswer = { status: 500, text: 'the script has ended' }

async function answer(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  { requests, answerOf }: { requests: ModelRequest[]; answerOf: Script },
): Promise<void> {
  const path = (incoming.url ?? '').split('?')[0] ?? ''
  const wire = WIRES.find(({ matches }) => matches(path))
  if (!wire) return send(outgoing, 404, { error: { message: `no API is at ${path}` } })
  const text = await textOf(incoming)
  const body = JSON.parse(text) as Record<string, unknown>
  const { model, stream, tools } = wire.read(body, path)
  const request: ModelRequest = { wire: wire.name, path, headers: incoming.headers, text, body, stream, tools }
  const index = requests.push(request) - 1
  const scripted = await answerOf(request, index)
  await scripted.after
  const { status = 200 } = scripted
  if (status !== 200) return send(outgoing, status, wire.toError(status, scripted.text ?? 'scripted error'))
  const full = toFull(scripted, model, index)
  if (!stream) return send(outgoing, 200, wire.toJson(full))
  await sendEvents(outgoing, wire.toEvents(full), scripted)
}

function toFull({ text = '', calls = [], usage }: ScriptedAnswer, model: string, index: number): FullAnswer {
  return {
    id: `answer-${index + 1}`,
    model,
    text,
    calls: calls.map(({ id, name, input = {} }, i) => ({
      id: id ?? `call-${index + 1}-${i + 1}`,
      name,
      arguments: typeof input === 'string' ? input : JSON.stringify(input),
    })),
    usage: usage ?? { input: 10, output: 5 },
  }
}

async function sendEvents(
  outgoing: ServerResponse,
  events: readonly string[],
  { breaksAfter, between }: ScriptedAnswer,
): Promise<void> {
  outgoing.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
  for (const [i, event] of events.entries()) {
    if (i === breaksAfter) {
      outgoing.destroy()
      return
    }
    if (outgoing.destroyed) return
    outgoing.write(event)
    await between?.()
  }
  outgoing.end()
}

function send(outgoing: ServerResponse, status: number, body: unknown): void {
  outgoing.writeHead(status, { 'content-type': 'application/json' })
  outgoing.end(JSON.stringify(body))
}

async function textOf(incoming: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of incoming) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}
