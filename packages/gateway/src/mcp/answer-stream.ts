import type { ServerResponse } from 'node:http'
import { type Canceller, type Cancelling, createCanceller } from '@toolgate/core/internal'
import type { RequestId } from '@toolgate/mcp'
import { sendJson, toEvent } from './protocol.ts'

/** More unread bytes than this mean that a client does not read. */
const MAX_UNREAD_BYTES = 1024 * 1024

/** The response to one request: JSON, or an event stream once something is sent before the answer. */
export class AnswerStream {
  readonly #response: ServerResponse
  #gone: Canceller | undefined

  constructor(response: ServerResponse) {
    this.#response = response
  }

  /** Aborts when the client disconnects before it has the answer. */
  get gone(): Cancelling {
    if (this.#gone) return this.#gone
    const gone = (this.#gone = createCanceller())
    const response = this.#response
    response.once('close', () => {
      if (!response.writableFinished) gone.abort(new Error('the client went away'))
    })
    return gone
  }

  /** Sends a message that may be lost. Only the first one turns the response into an event stream: most calls send none. */
  notify(message: object): void {
    const response = this.#response
    // It must not use up memory for a client that does not read.
    if (response.destroyed || response.writableEnded || response.writableLength > MAX_UNREAD_BYTES) return
    if (!response.headersSent) {
      response.writeHead(200, {
        'content-type': 'text/event-stream',
        'cache-control': 'no-store',
        'x-accel-buffering': 'no',
      })
    }
    response.write(toEvent(JSON.stringify(message)))
  }

  /** Sends the answer: the text of a JSON-RPC message. */
  end(text: string): void {
    if (this.#response.headersSent) this.#response.end(toEvent(text))
    else sendJson(this.#response, text)
  }

  /** Sends a result whose bytes are kept. */
  endWith(id: RequestId, result: Buffer): void {
    const response = this.#response
    const head = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":`
    response.writeHead(200, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(head) + result.length + 1,
    })
    response.cork()
    response.write(head)
    response.write(result)
    response.end('}')
  }
}

/** The bytes of results that answer many requests. */
export class KeptBytes<Reply extends object> {
  readonly #bytes = new WeakMap<Reply, Buffer>()

  /** Returns the bytes of a reply. `toResult` returns its result as it is sent. */
  of(reply: Reply, toResult: () => object): Buffer {
    let bytes = this.#bytes.get(reply)
    if (!bytes) this.#bytes.set(reply, (bytes = Buffer.from(JSON.stringify(toResult()))))
    return bytes
  }
}
