import { TextDecoder } from 'node:util'
import { ApiFault } from './faults.ts'

const MAX_BODY_BYTES = 64 * 1024
const JSON_TYPE = /^application\/json(?:\s*;|$)/i

/**
 * Reads a JSON object of at most 64 KiB with no fields but the ones named.
 *
 * The media type is required: a page of another origin cannot send it without asking first.
 *
 * @throws {ApiFault} `media_type_unsupported`, `body_too_large`, `body_invalid`
 */
export async function readBody(request: Request, fields: readonly string[]): Promise<ReadonlyMap<string, unknown>> {
  if (!JSON_TYPE.test(request.headers.get('content-type') ?? ''))
    throw new ApiFault('media_type_unsupported', 'The body must be application/json.')
  const body = parseJson(await readText(request))
  if (typeof body !== 'object' || body === null || Array.isArray(body)) throw invalid('The body must be a JSON object.')
  const unknown = Object.keys(body).find((field) => !fields.includes(field))
  if (unknown !== undefined)
    throw invalid(
      `The field ${JSON.stringify(unknown.slice(0, 100))} is not known here; known are ${fields.join(', ')}.`,
    )
  return new Map(Object.entries(body))
}

/** Counts what arrives, because a `Content-Length` may be absent. */
async function readText(request: Request): Promise<string> {
  const tooLarge = new ApiFault('body_too_large', `The body has more than ${MAX_BODY_BYTES} bytes.`)
  if (Number(request.headers.get('content-length')) > MAX_BODY_BYTES) throw tooLarge
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let text = ''
  let size = 0
  for await (const chunk of chunksOf(request)) {
    size += chunk.byteLength
    if (size > MAX_BODY_BYTES) throw tooLarge
    text += decode(decoder, chunk)
  }
  return text + decode(decoder)
}

/** A client may go away before it has sent all, which is no fault of the gateway. */
async function* chunksOf({ body }: Request): AsyncGenerator<Uint8Array> {
  try {
    yield* body ?? []
  } catch {
    throw invalid('The body ended too early.')
  }
}

function decode(decoder: TextDecoder, chunk?: Uint8Array): string {
  try {
    return decoder.decode(chunk, { stream: chunk !== undefined })
  } catch {
    throw invalid('The body is not UTF-8.')
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw invalid('The body is not JSON.')
  }
}

/** Gives the fault of a body that cannot be used. */
export function invalid(message: string): ApiFault {
  return new ApiFault('body_invalid', message)
}
