import { isObject, type JsonObject, readJson } from '@toolgate/values/json'
import { withoutNullEntries } from '@toolgate/mcp'
import type { GuardedFetch } from './guarded-fetch.ts'

/** The status that the standard has for a success: 200 of a token (RFC 6749 §5.1), 201 of a client (RFC 7591 §3.2.1). */
type Success = 200 | 201

/**
 * Returns a fetch whose JSON answers have the form that `oauth4webapi` requires: it is stricter than servers are.
 *
 * Null members are absent, an `expires_in` may be a text, a `scope` a list, a success any status of 2xx, and an error
 * may come with such a status. The tokens and ids in it stay as they are.
 */
export function standardFetch(fetch: GuardedFetch, success: Success): GuardedFetch {
  return async (url, init) => toStandard(await fetch(url, init), success)
}

async function toStandard(response: Response, success: Success): Promise<Response> {
  const { ok, status } = response
  const text = await response.text()
  const headers = withoutBodyHeaders(response.headers)
  const body = toObject(text)
  if (!body) return new Response(text, { status: ok ? success : status, headers })
  const isRefused = typeof body['error'] === 'string' && body['error'] !== ''
  const answer = success === 200 && !isRefused ? { ...DEFAULT_TOKEN, ...toMembers(body) } : toMembers(body)
  return Response.json(answer, { status: ok ? (isRefused ? 400 : success) : status, headers })
}

/** A token without a type is sent as a bearer token, like all tokens. */
const DEFAULT_TOKEN = { token_type: 'bearer' }
/** Members that an empty text leaves out. */
const OPTIONAL: ReadonlySet<string> = new Set(['refresh_token', 'id_token', 'client_secret', 'error'])
const NUMBERS: ReadonlySet<string> = new Set(['expires_in', 'client_secret_expires_at'])

function toMembers(body: JsonObject): JsonObject {
  const members = Object.entries(withoutNullEntries(body)).flatMap(([name, value]) => {
    if (value === '' && OPTIONAL.has(name)) return []
    if (name === 'scope' && Array.isArray(value)) return [[name, value.join(' ')] as const]
    return [[name, NUMBERS.has(name) && isDigits(value) ? Number(value) : value] as const]
  })
  // RFC 7591 §3.2.1 requires it beside a secret; 0 is "never".
  return { ...('client_secret' in body ? { client_secret_expires_at: 0 } : {}), ...Object.fromEntries(members) }
}

function toObject(text: string): JsonObject | undefined {
  try {
    const body: unknown = readJson(text)
    return isObject(body) ? body : undefined
  } catch {
    return undefined
  }
}

function isDigits(value: unknown): boolean {
  return typeof value === 'string' && /^\d{1,15}(?:\.\d+)?$/.test(value)
}

/** Returns the headers without those that describe the bytes of the body. */
function withoutBodyHeaders(from: Headers): Headers {
  const headers = new Headers(from)
  for (const name of ['content-type', 'content-length']) headers.delete(name)
  return headers
}
