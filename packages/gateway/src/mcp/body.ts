import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { describeExcess, type JsonBounds, measureJson } from '../json-text.ts'
import { RpcFault } from './protocol.ts'

/** The SDK has the same limit. */
export const MAX_BODY_BYTES = 4 * 1024 * 1024
/** A call parses, copies, validates, hashes and writes its body. Within these bounds, that takes a few milliseconds. */
export const BODY_BOUNDS = {
  depth: 64,
  values: 50_000,
  keys: 10_000,
  keyLength: 4096,
} as const satisfies JsonBounds

/** The client disconnected before it had sent its whole request. This is not a fault: nobody waits for an answer. */
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
  const tooLarge = () =>
    new RpcFault('body_too_large', `The body is larger than ${maxBytes} bytes.`, { headers: { connection: 'close' } })
  return new Promise((resolve, reject) => {
    if (Number(request.headers['content-length']) > maxBytes) return reject(tooLarge())
    const chunks: Buffer[] = []
    let size = 0
    request.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > maxBytes) {
        request.pause()
        reject(tooLarge())
      } else chunks.push(chunk)
    })
    request.on('end', () => {
      const [first] = chunks
      const bytes = first && chunks.length === 1 ? first : Buffer.concat(chunks)
      if (isUtf8(bytes)) resolve(bytes.toString())
      else reject(new RpcFault('body_not_json', 'The body is not UTF-8.'))
    })
    request.on('error', (cause) => reject(new ClientGone('the client went away', { cause })))
    request.on('close', () => {
      if (!request.complete) reject(new ClientGone('the client went away'))
    })
  })
}

/**
 * Returns the parsed body.
 *
 * Refuses a key that occurs twice in one object, because parsers disagree about its value. Refuses a body with too many
 * values before it is parsed.
 *
 * @throws {RpcFault} `body_not_json`, `body_not_message`
 */
export function parseBody(text: string): unknown {
  const measure = measureJson(text, BODY_BOUNDS)
  if (measure.excess) throw new RpcFault('body_not_message', `The body ${describeExcess(measure.excess)}.`)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new RpcFault('body_not_json', 'The body is not JSON.')
  }
  if (countKeys(value) !== measure.members) {
    throw new RpcFault('body_not_message', 'A key occurs twice in one object of the body.')
  }
  return value
}

/** Counts the own keys of a value and of everything in it. */
function countKeys(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  let count = 0
  if (Array.isArray(value)) {
    for (const item of value) count += countKeys(item)
    return count
  }
  for (const member of Object.values(value)) count += 1 + countKeys(member)
  return count
}
