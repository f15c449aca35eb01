import { createServer, type IncomingMessage, request as send, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A front before a gateway, because the referee sends no key and calls items by their own names. */
export interface Front {
  readonly url: string
  close(): Promise<void>
}

const NAMED: ReadonlySet<unknown> = new Set(['tools/call', 'prompts/get'])

/** Adds the key to each request and the prefix to each name, and takes the prefix off the names in answers. */
export async function startFront(gatewayUrl: string, key: string, prefix: string): Promise<Front> {
  let host = ''
  const server = createServer((request, response) => void forward(request, response))
  const forward = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { body, headers } = withPrefix(await readAll(request), toGateway(request.headers, host, gatewayUrl), prefix)
    const sent = send(
      gatewayUrl,
      {
        method: request.method,
        headers: { ...headers, authorization: `Bearer ${key}`, 'content-length': body.length },
      },
      (answer) => {
        const { 'content-length': _, ...kept } = answer.headers
        response.writeHead(answer.statusCode ?? 502, kept)
        answer.setEncoding('utf8')
        answer.on('data', (chunk: string) => response.write(chunk.replaceAll(`"name":"${prefix}`, '"name":"')))
        answer.on('end', () => response.end())
        answer.on('error', () => response.destroy())
      },
    )
    sent.on('error', () => response.destroy())
    response.on('close', () => sent.destroy())
    sent.end(body)
  }
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url: `http://${host}/mcp`,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** The front's own address becomes the gateway's; another one stays, because the referee tries DNS rebinding. */
function toGateway(headers: IncomingMessage['headers'], own: string, gatewayUrl: string): IncomingMessage['headers'] {
  const { host } = new URL(gatewayUrl)
  const { origin } = headers
  return {
    ...headers,
    ...(headers.host === own && { host }),
    ...(origin === `http://${own}` && { origin: `http://${host}` }),
  }
}

interface Sent {
  readonly body: Buffer
  readonly headers: IncomingMessage['headers']
}

function withPrefix(body: Buffer, headers: IncomingMessage['headers'], prefix: string): Sent {
  const message = parse(body)
  const params = message?.params
  if (!params) return { body, headers }
  const { 'mcp-name': header } = headers
  if (NAMED.has(message.method) && typeof params['name'] === 'string') {
    const named = { ...message, params: { ...params, name: prefix + params['name'] } }
    // A header that differs from the body still differs.
    const own = typeof header === 'string' ? { 'mcp-name': prefix + header.trim() } : {}
    return { body: Buffer.from(JSON.stringify(named)), headers: { ...headers, ...own } }
  }
  const { ref } = params as { ref?: { type?: unknown; name?: unknown } }
  if (ref?.type !== 'ref/prompt') return { body, headers }
  const named = { ...message, params: { ...params, ref: { ...ref, name: prefix + String(ref.name) } } }
  return { body: Buffer.from(JSON.stringify(named)), headers }
}

function parse(body: Buffer): { method?: unknown; params?: Record<string, unknown> } | undefined {
  try {
    return JSON.parse(body.toString()) as { method?: unknown; params?: Record<string, unknown> }
  } catch {
    return undefined
  }
}

async function readAll(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}
