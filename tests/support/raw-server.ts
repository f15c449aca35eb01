import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Returns the text of the answer to a message; `undefined` for a notification. */
export type AnswerTo = (text: string) => string | undefined

/** Starts a server that answers each POST with exactly this text, as JSON. */
export async function startRawServer(answerTo: AnswerTo): Promise<{ readonly url: string; close(): Promise<void> }> {
  const respond = async (request: IncomingMessage, response: ServerResponse) => {
    if (request.method !== 'POST') return response.writeHead(405).end()
    const answer = answerTo(Buffer.concat((await request.toArray()) as Buffer[]).toString())
    if (answer === undefined) return response.writeHead(202).end()
    return response.writeHead(200, { 'content-type': 'application/json' }).end(answer)
  }
  const server = createServer((request, response) => void respond(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
