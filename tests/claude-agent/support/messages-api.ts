import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export type Block =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'tool_use'; readonly id: string; readonly name: string; readonly input: object }

/** What a model was asked. */
export interface ModelRequest {
  /** As it came. */
  readonly text: string
  readonly tools: readonly string[]
  readonly messages: readonly unknown[]
}

/** What the model says to a request, which is the so-and-so-many-eth of the server, from 0. */
export type Script = (request: ModelRequest, index: number) => readonly Block[] | Promise<readonly Block[]>

export interface MessagesApi {
  readonly url: string
  readonly requests: readonly ModelRequest[]
  close(): Promise<void>
}

const USAGE = { input_tokens: 10, output_tokens: 5, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 }

/** Serves what the harness needs of the Messages API, streamed as the provider streams it, with a scripted model behind. */
export async function serveMessages(script: Script): Promise<MessagesApi> {
  const requests: ModelRequest[] = []
  const server = createServer((incoming, response) => {
    void (async () => {
      const chunks: Buffer[] = []
      for await (const chunk of incoming) chunks.push(chunk as Buffer)
      if (!incoming.url?.startsWith('/v1/messages?')) return void response.writeHead(404).end()
      const request = parseRequest(Buffer.concat(chunks).toString())
      const index = requests.push(request) - 1
      stream(response, `msg_${index}`, await script(request, index))
    })()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

function parseRequest(text: string): ModelRequest {
  const { tools = [], messages } = JSON.parse(text) as { tools?: { name: string }[]; messages: unknown[] }
  return { text, tools: tools.map(({ name }) => name), messages }
}

function stream(response: ServerResponse, id: string, blocks: readonly Block[]): void {
  const send = (type: string, data: object) =>
    response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`)
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const message = { id, type: 'message', role: 'assistant', model: 'scripted', content: [], stop_reason: null }
  send('message_start', { message: { ...message, stop_sequence: null, usage: USAGE } })
  for (const [index, block] of blocks.entries()) {
    const [start, delta] =
      block.type === 'text'
        ? [
            { ...block, text: '' },
            { type: 'text_delta', text: block.text },
          ]
        : [
            { ...block, input: {} },
            { type: 'input_json_delta', partial_json: JSON.stringify(block.input) },
          ]
    send('content_block_start', { index, content_block: start })
    send('content_block_delta', { index, delta })
    send('content_block_stop', { index })
  }
  const stop_reason = blocks.some(({ type }) => type === 'tool_use') ? 'tool_use' : 'end_turn'
  send('message_delta', { delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 5 } })
  send('message_stop', {})
  response.end()
}
