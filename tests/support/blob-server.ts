import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createInterface } from 'node:readline'
import { text as readText } from 'node:stream/consumers'
import type { Writable } from 'node:stream'

/** 100 MB, as base64. */
export const BLOB_CHARS = 134_217_728
const PIECE = 'AAAA'.repeat(256 * 1024)

interface Message {
  readonly id?: number
  readonly method: string
  readonly params?: { readonly name?: string; readonly uri?: string }
}

/** What surrounds the blob in a result: that of a tool, and of a resource. */
function envelope({ method, params = {} }: Message): readonly [string, string] {
  return method === 'tools/call'
    ? ['{"content":[{"type":"image","mimeType":"image/png","data":"', '"}]}']
    : [`{"contents":[{"uri":${JSON.stringify(params.uri)},"blob":"`, '"}]}']
}

const isBlob = ({ params = {} }: Message) => params.name === 'blob' || (params.uri ?? '').includes('/blob')

function answerOf({ method, params = {} }: Message, scheme: string): object {
  switch (method) {
    case 'initialize':
      return {
        protocolVersion: '2025-11-25',
        capabilities: { tools: {}, resources: {} },
        serverInfo: { name: 'blobs', version: '1' },
      }
    case 'tools/list':
      return { tools: ['blob', 'wait', 'echo'].map((name) => ({ name, inputSchema: { type: 'object' } })) }
    case 'resources/list':
      return { resources: ['blob', 'blob-event', 'small'].map((name) => ({ uri: `${scheme}:///${name}`, name })) }
    case 'resources/templates/list':
      return { resourceTemplates: [] }
    case 'resources/read':
      return { contents: [{ uri: params.uri, text: 'small' }] }
    default:
      return { content: [{ type: 'text', text: `${params.name} ran` }] }
  }
}

/** Writes a message with the blob, in pieces and as fast as it is read. Stops when nobody reads any longer. */
async function writeBlob(to: Writable, message: Message, idLast: boolean): Promise<number> {
  const [before, after] = envelope(message)
  const id = `"id":${message.id}`
  let sent = 0
  const write = async (text: string) => {
    if (to.destroyed) return
    sent += text.length
    if (!to.write(text)) await Promise.race([once(to, 'drain'), once(to, 'close')])
  }
  await write(idLast ? `{"result":${before}` : `{"jsonrpc":"2.0",${id},"result":${before}`)
  for (let i = 0; i < BLOB_CHARS / PIECE.length && !to.destroyed; i++) await write(PIECE)
  await write(idLast ? `${after},"jsonrpc":"2.0",${id}}` : `${after}}`)
  return sent
}

/** A server over stdio. A call of `wait` is answered when the next message has come. */
function serveStdio(): void {
  const waiting: Message[] = []
  const reply = (message: Message) =>
    process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id: message.id, result: answerOf(message, 'pipe') })}\n`)
  createInterface({ input: process.stdin }).on('line', (line) => {
    const message = JSON.parse(line) as Message
    if (message.id === undefined) return
    if (message.params?.name === 'wait') return void waiting.push(message)
    if (isBlob(message))
      return void writeBlob(process.stdout, message, message.method === 'tools/call').then(() =>
        process.stdout.write('\n'),
      )
    reply(message)
    for (const held of waiting.splice(0)) reply(held)
  })
}

export interface BlobServer {
  readonly url: string
  /** How many characters of each blob were taken from it. */
  readonly sent: readonly number[]
  close(): Promise<void>
}

/** Starts the same server over HTTP. It answers `net:///blob-event` with an event stream, and with JSON otherwise. */
export async function startBlobServer(): Promise<BlobServer> {
  const sent: number[] = []
  const waiting: (() => void)[] = []
  const reply = (response: ServerResponse, message: Message) =>
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ jsonrpc: '2.0', id: message.id, result: answerOf(message, 'net') }))
  const serve = async (message: Message, response: ServerResponse) => {
    if (message.id === undefined) return void response.writeHead(202).end()
    if (message.params?.name === 'wait') return void waiting.push(() => reply(response, message))
    if (!isBlob(message)) {
      reply(response, message)
      for (const release of waiting.splice(0)) release()
      return
    }
    const isEvent = message.params?.uri === 'net:///blob-event'
    response.writeHead(200, { 'content-type': isEvent ? 'text/event-stream' : 'application/json' })
    if (isEvent) response.write('data: ')
    sent.push(await writeBlob(response, message, false))
    response.end(isEvent ? '\n\n' : '')
  }
  const server = createServer((request, response) => {
    if (request.method !== 'POST') return void response.writeHead(405).end()
    readText(request)
      .then(async (body) => serve(JSON.parse(body) as Message, response))
      .catch(() => response.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    sent,
    close() {
      server.closeAllConnections()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}

if (process.argv[2] === 'stdio') serveStdio()
