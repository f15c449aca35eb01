import type { IncomingMessage, ServerResponse } from 'node:http'
import { JsonFault, readJson, readUtf8 } from '@toolgate/values/json'
import { RpcFault } from './protocol.ts'

/** The limit of the SDK. */
export const MAX_BODY_BYTES = 4 * 1024 * 1024

/** The client disconnected before it had sent the whole request. This is not a fault, as nobody waits for an answer. */
export class ClientGone extends Error {
  override readonly name = 'ClientGone'
}

/**
 * Reads a request body.
 *
 * @throws {RpcFault} `body_too_large`, as soon as the announced or received size exceeds the limit; `body_not_json` for
 * bytes that are not UTF-8 (RFC 8259 §8.1)
 * @throws {ClientGone}
 */
export function readBody(request: IncomingMessage, maxBytes: number = MAX_BODY_BYTES): Promise<string> {
  const tooLarge = () => new RpcFault('body_too_large', `The body is larger than ${maxBytes} bytes.`)
  const received = new Promise<Buffer>((resolve, reject) => {
    if (Number(request.headers['content-length']) > maxBytes) return reject(tooLarge())
    const chunks: Buffer[] = []
    let size = 0
    request.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > maxBytes) {
        chunks.length = 0
        request.pause()
        reject(tooLarge())
      } else chunks.push(chunk)
    })
    request.on('end', () => {
      const [first] = chunks
      resolve(first && chunks.length === 1 ? first : Buffer.concat(chunks))
    })
    request.on('error', (cause) => reject(new ClientGone('the client went away', { cause })))
    request.on('close', () => {
      if (!request.complete) reject(new ClientGone('the client went away'))
    })
  })
  return received.then(toText)
}

function toText(bytes: Buffer): string {
  try {
    return readUtf8(bytes)
  } catch (error) {
    throw toRpcFault(error)
  }
}

/**
 * Returns the parsed body.
 *
 * @throws {RpcFault} `body_not_json`, `body_not_message`
 */
export function parseBody(text: string): unknown {
  try {
    return readJson(text, { integers: 'exact' })
  } catch (error) {
    throw toRpcFault(error)
  }
}

function toRpcFault(error: unknown): unknown {
  if (!(error instanceof JsonFault)) return error
  const rule = error.kind === 'not-json' || error.kind === 'not-utf8' ? 'body_not_json' : 'body_not_message'
  return new RpcFault(rule, `The body ${error.problem}.`)
}

/** How long to keep reading a body after its request was answered. */
const REST_MS = 1000

/**
 * Discards the rest of a body whose request is answered early, so that a client that is still sending receives the
 * answer. Closing a connection with unread bytes would reset it, and the client's system would drop the answer.
 *
 * The connection is closed if the body does not end within a second.
 */
export function discardRest(request: IncomingMessage, response: ServerResponse): void {
  const { 'content-length': length, 'transfer-encoding': coding } = request.headers
  if (length === undefined && coding === undefined) return
  response.once('finish', () => {
    if (request.complete || request.destroyed) return
    const timer = setTimeout(() => {
      if (!request.complete) request.socket.destroySoon()
    }, REST_MS).unref()
    request.once('close', () => clearTimeout(timer))
    // The handler that answered no longer reads, and would pause the body again.
    request.removeAllListeners('data').resume()
  })
}
