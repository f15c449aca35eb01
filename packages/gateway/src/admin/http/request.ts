import { JsonFault, readJson, readUtf8, toJsonText } from '@toolgate/values/json'
import { hash } from 'node:crypto'
import { isLarge, nextTurn } from '../../util/next-turn.ts'
import { ApiFault } from '../../model/faults.ts'

/** Parses one parameter. Throws a `RangeError` whose message ends a sentence, such as `must be a whole number`. */
export type Parameter<Value> = (text: string) => Value

type Parameters = Readonly<Record<string, Parameter<unknown>>>
type Parsed<P extends Parameters> = { readonly [Name in keyof P]?: ReturnType<P[Name]> }

const MAX_TEXT_LENGTH = 256

/**
 * Parses a query string strictly: every parameter must be known, given once and valid.
 *
 * @throws {ApiFault} `query_invalid`, naming the parameter
 */
export function parseQuery<P extends Parameters>(query: URLSearchParams, parameters: P): Parsed<P> {
  const known = new Map(Object.entries(parameters))
  const values = new Map<string, unknown>()
  for (const [name, text] of query) {
    const parameter = known.get(name)
    if (!parameter) throw invalidQuery(name, `is unknown; ${listed([...known.keys()])}`)
    if (values.has(name)) throw invalidQuery(name, 'is given twice')
    if (UNREADABLE.test(text)) throw invalidQuery(name, 'is not UTF-8, or has the character U+0000')
    values.set(name, read(name, text, parameter))
  }
  return Object.fromEntries(values) as Parsed<P>
}

/** The replacement for bytes that are not UTF-8, and U+0000, which PostgreSQL does not accept. */
const UNREADABLE = /[\0\uFFFD]/

/** Returns the query of a request, decoded. */
export function queryOf({ url }: Request): URLSearchParams {
  return new URL(url).searchParams
}

/** Checks that a path decodes to valid text. @throws {ApiFault} `request_malformed` */
export function checkPath(path: string): void {
  try {
    if (!UNREADABLE.test(decodeURIComponent(path))) return
  } catch {
    // The error is thrown below.
  }
  throw new ApiFault(
    'request_malformed',
    'The path is not UTF-8, or has a percent sign without two hex digits, or U+0000.',
  )
}

/** @throws {ApiFault} `query_invalid` if a required parameter is absent */
export function required<Value>(name: string, value: Value | undefined): Value {
  if (value === undefined) throw invalidQuery(name, 'is needed')
  return value
}

/** Text of 1 to 256 characters. */
export const shortText = textUpTo(MAX_TEXT_LENGTH)

/** The id of an item of any kind. That of a resource contains its URI, of at most 2,048 characters. */
export const itemId = textUpTo(MAX_TEXT_LENGTH + 2048)

/** Text of 1 to `max` characters. */
export function textUpTo(max: number): Parameter<string> {
  return (value) => {
    if (value === '') throw new RangeError('must not be empty')
    if (value.length > max) throw new RangeError(`has more than ${max} characters`)
    return value
  }
}

/** An integer in decimal digits, from `min` to `max`. */
export function wholeNumber(min: number, max: number): Parameter<number> {
  return (value) => {
    const number = /^\d{1,16}$/.test(value) ? Number(value) : Number.NaN
    if (number >= min && number <= max) return number
    throw new RangeError(`must be a whole number from ${min} to ${max}`)
  }
}

/** A time as RFC 3339, or as milliseconds since 1970. */
export const time: Parameter<number> = (value) => {
  const ms = /^\d{1,15}$/.test(value) ? Number(value) : TIME.test(value) ? Date.parse(value) : Number.NaN
  if (!Number.isNaN(ms)) return ms
  throw new RangeError('must be a time such as 2026-11-21T09:00:00Z, or milliseconds since 1970')
}

const TIME = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2}))?$/

/** One of a list of words. */
export function oneOf<Word extends string>(words: readonly Word[]): Parameter<Word> {
  return (value) => {
    const word = words.find((known) => known === value)
    if (word === undefined) throw new RangeError(`must be one of ${words.join(', ')}`)
    return word
  }
}

function read(name: string, value: string, parameter: Parameter<unknown>): unknown {
  try {
    return parameter(value)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw invalidQuery(name, error.message)
  }
}

/** Returns a body as JSON. Large integers keep their digits. */
export function jsonResponse(body: unknown): Response {
  return new Response(toJsonText(body), { headers: { 'content-type': 'application/json' } })
}

/** Returns JSON with its hash as the ETag, or a 304 to a client that already has it. */
export function taggedJson({ headers }: Request, text: string): Response {
  const etag = `"${hash('sha1', text, 'base64url')}"`
  if (headers.get('if-none-match') === etag) return new Response(null, { status: 304, headers: { etag } })
  return new Response(text, { headers: { 'content-type': 'application/json', etag } })
}

/** Returns the fault for a parameter. `problem` ends the sentence. */
export function invalidQuery(name: string, problem: string): ApiFault {
  return new ApiFault(
    'query_invalid',
    `The query parameter ${JSON.stringify(name.slice(0, MAX_TEXT_LENGTH))} ${problem}.`,
  )
}

function listed(names: readonly string[]): string {
  return names.length === 0 ? 'there are none' : `known are ${names.join(', ')}`
}

const MAX_BODY_BYTES = 64 * 1024
const JSON_TYPE = /^application\/json(?:\s*;|$)/i

/**
 * Reads a JSON object of at most 64 KiB, or `maxBytes`, with only known fields. A field that is `null` is absent.
 *
 * The media type is required, because a page of another origin cannot send it without a preflight.
 *
 * @throws {ApiFault} `media_type_unsupported`, `body_too_large`, `body_invalid`
 */
export async function readBody(
  request: Request,
  fields: readonly string[],
  maxBytes: number = MAX_BODY_BYTES,
): Promise<ReadonlyMap<string, unknown>> {
  if (!JSON_TYPE.test(request.headers.get('content-type') ?? ''))
    throw new ApiFault('media_type_unsupported', 'The body must be application/json.')
  const body = await readJsonBody(request, maxBytes)
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw invalidBody('The body must be a JSON object.')
  const unknown = Object.keys(body).find((field) => !fields.includes(field))
  if (unknown !== undefined)
    throw invalidBody(`The field ${JSON.stringify(unknown.slice(0, 100))} is unknown; ${listed(fields)}.`)
  return new Map(Object.entries(body).filter(([, value]) => value !== null))
}

/** Reads a JSON body. A large one is decoded, parsed and used in separate turns of the event loop, as at `/mcp`. */
async function readJsonBody(request: Request, maxBytes: number): Promise<unknown> {
  try {
    const text = await readText(request, maxBytes)
    if (isLarge(text)) await nextTurn()
    const body = readJson(text, { integers: 'exact' })
    if (isLarge(text)) await nextTurn()
    return body
  } catch (error) {
    throw error instanceof JsonFault ? invalidBody(`The body ${error.problem}.`) : error
  }
}

/**
 * Reads a body of at most `maxBytes` bytes, which are counted because `Content-Length` may be absent.
 *
 * @throws {ApiFault} `body_too_large`, `body_invalid`
 */
export async function readText(request: Request, maxBytes: number): Promise<string> {
  const tooLarge = () => new ApiFault('body_too_large', `The body has more than ${maxBytes} bytes.`)
  if (Number(request.headers.get('content-length')) > maxBytes) throw tooLarge()
  const { body } = request
  if (!body) return ''
  // The stream is not cancelled, since that would close the connection before the client has its answer.
  const reader = body.getReader()
  const chunks: Uint8Array[] = []
  for (let size = 0; ;) {
    const { value, done } = await nextOf(reader)
    if (done) return readUtf8(Buffer.concat(chunks))
    size += value.byteLength
    if (size > maxBytes) throw tooLarge()
    chunks.push(value)
  }
}

/** Reads the next chunk. A client that disconnects early is not a fault of the gateway. */
async function nextOf(reader: ReadableStreamDefaultReader<Uint8Array>) {
  try {
    return await reader.read()
  } catch {
    throw invalidBody('The body ended too early.')
  }
}

/** Parses one field of a body; `undefined` if it is absent. @throws {ApiFault} `body_invalid`, naming the field */
export function parseField<Value>(
  body: ReadonlyMap<string, unknown>,
  field: string,
  parse: Parameter<Value>,
): Value | undefined {
  const value = body.get(field)
  if (value === undefined) return undefined
  if (typeof value !== 'string') throw invalidBody(`The field "${field}" must be a text.`)
  try {
    return parse(value)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw invalidBody(`The field "${field}" ${error.message}.`)
  }
}

/** @throws {ApiFault} `route_unknown` */
export function nothingAt(path: string): never {
  throw new ApiFault('route_unknown', `Nothing is served at ${path.slice(0, 200)}.`)
}

/** Returns the fault for an invalid body. */
export function invalidBody(message: string): ApiFault {
  return new ApiFault('body_invalid', message)
}

/** Returns a field that is true, false or absent. @throws {ApiFault} `body_invalid` */
export function readFlag(body: ReadonlyMap<string, unknown>, field: string): boolean | undefined {
  const value = body.get(field)
  if (value === undefined || typeof value === 'boolean') return value
  throw invalidBody(`The field "${field}" must be true or false.`)
}

/** Returns a field that is a text or absent. @throws {ApiFault} `body_invalid` */
export function readTextField(body: ReadonlyMap<string, unknown>, field: string): string | undefined {
  const value = body.get(field)
  if (value === undefined || typeof value === 'string') return value
  throw invalidBody(`The field "${field}" must be a string.`)
}
