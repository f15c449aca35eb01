import { health } from './health.ts'
import type { ErrorBody } from './wire.ts'
import { parseDigits, writeDigits } from './digits.ts'

/** Thrown for an error response. `status` is 0 if no response came. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly status: number
  readonly code: string

  constructor(status: number, code: string, message: string) {
    super(message)
    this.status = status
    this.code = code
  }

  /** Whether the gateway is an earlier version without this route. */
  get isAbsent(): boolean {
    return this.status === 404 && this.code === 'route_unknown'
  }
}

export interface GetOptions {
  readonly query?: Readonly<Record<string, string | number | undefined>>
  readonly signal?: AbortSignal
}

/** @throws {ApiError} */
export function getJson<Body>(path: string, { query = {}, signal }: GetOptions = {}): Promise<Body> {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== '') parameters.set(name, String(value))
  const search = parameters.size > 0 ? `?${parameters}` : ''
  return request(`${path}${search}`, signal ? { signal } : {})
}

interface PostOptions {
  /** Whether the request is sent even if the page closes. */
  readonly keepalive?: boolean
  /** The longest wait for an answer. Default 15,000. */
  readonly timeoutMs?: number
}

/** @throws {ApiError} */
export function postJson<Body>(
  path: string,
  body: object,
  { keepalive = false, timeoutMs }: PostOptions = {},
): Promise<Body> {
  const headers = { 'content-type': 'application/json' }
  return request(path, { method: 'POST', keepalive, headers, body: writeDigits(body) }, timeoutMs)
}

/** @throws {ApiError} */
export function deleteJson<Body>(path: string): Promise<Body> {
  return request(path, { method: 'DELETE' })
}

/** The time without an answer after which the page counts as out of date, in milliseconds. */
const TIMEOUT_MS = 15_000

/** The latest answers with an ETag. They are large, and the gateway does not send unchanged ones again. */
const tagged = new Map<string, { readonly etag: string; readonly body: unknown }>()
const MAX_TAGGED = 4

function keepTagged(path: string, etag: string | null, body: unknown): void {
  tagged.delete(path)
  if (etag !== null) tagged.set(path, { etag, body })
  const [oldest = ''] = tagged.keys()
  if (tagged.size > MAX_TAGGED) tagged.delete(oldest)
}

async function request<Body>(path: string, init: RequestInit, timeoutMs = TIMEOUT_MS): Promise<Body> {
  const signal = AbortSignal.any([AbortSignal.timeout(timeoutMs), ...(init.signal ? [init.signal] : [])])
  const known = init.method === undefined ? tagged.get(path) : undefined
  const headers = new Headers(init.headers)
  if (known) headers.set('if-none-match', known.etag)
  const answer = await fetch(path, { ...init, headers, signal, credentials: 'same-origin' }).catch((error: unknown) => {
    if (init.signal?.aborted) throw error
    health.failed()
    throw new ApiError(0, 'unreachable', 'The gateway does not answer. Is it still running?')
  })
  if (answer.status >= 500) health.failed()
  else health.ok()
  if (answer.status === 304 && known) return known.body as Body
  if (answer.ok) {
    const sent = parseDigits(await answer.text()) as Body
    keepTagged(path, answer.headers.get('etag'), sent)
    return sent
  }
  const body = (await answer.json().catch(() => undefined)) as ErrorBody | undefined
  const { code = 'unknown', message = `The gateway answered with status ${answer.status}.` } = body?.error ?? {}
  throw new ApiError(answer.status, code, message)
}
