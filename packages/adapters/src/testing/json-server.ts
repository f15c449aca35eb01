import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A provider's API with scripted answers, one for each request. */
export interface JsonServer extends AsyncDisposable {
  readonly url: string
  /** The requests, as they came over the wire. */
  readonly bodies: readonly Readonly<Record<string, unknown>>[]
}

/** Starts the server on a free port of loopback. `answer` gets the request and the number of earlier requests. */
export async function startJsonServer(
  answer: (body: Readonly<Record<string, unknown>>, index: number) => unknown,
): Promise<JsonServer> {
  const bodies: Record<string, unknown>[] = []
  const server = createServer((request, response) => {
    void readBody(request).then((text) => {
      const body = JSON.parse(text) as Record<string, unknown>
      bodies.push(body)
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify(answer(body, bodies.length - 1)))
    })
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    bodies,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => void server.close(resolve))
    },
  }
}

async function readBody(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const part of request.setEncoding('utf8')) text += part as string
  return text
}
