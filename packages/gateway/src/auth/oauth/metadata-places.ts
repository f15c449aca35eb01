import { isObject, type JsonObject } from '@toolgate/values/json'
import { messageOf } from '@toolgate/values'
import { withoutNullEntries } from '@toolgate/mcp'

/** The answer of one place. */
interface PlaceAnswer {
  readonly status: number
  /** Absent unless the answer is JSON. */
  readonly body?: unknown
}

interface SearchBounds {
  /** After this time no further place is asked. Default 15 s. */
  readonly totalMs?: number
  /** Returns the monotonic time in milliseconds. */
  readonly nowMs?: () => number
}

const TOTAL_MS = 15_000

/** The metadata that was found, or the answer of each place, as a text. */
type FoundMetadata<T> = { readonly found: T } | { readonly answers: readonly string[] }

/**
 * Returns the metadata from the first place that has it.
 *
 * A place without it is skipped, whatever it answers: many sites answer 401, 403, 500 or a page where they have no
 * document. `take` returns the metadata of a body, or why the body is not what is sought.
 */
export async function findMetadata<T extends object>(
  places: readonly string[],
  ask: (place: string) => Promise<PlaceAnswer>,
  take: (body: JsonObject) => T | string,
  { totalMs = TOTAL_MS, nowMs = () => performance.now() }: SearchBounds = {},
): Promise<FoundMetadata<T>> {
  const answers: string[] = []
  const untilMs = nowMs() + totalMs
  for (const place of places) {
    const taken = nowMs() < untilMs ? await askOne(place, ask, take) : `${place} was not asked, as the others took long`
    if (typeof taken !== 'string') return { found: taken }
    answers.push(taken)
  }
  return { answers }
}

async function askOne<T extends object>(
  place: string,
  ask: (place: string) => Promise<PlaceAnswer>,
  take: (body: JsonObject) => T | string,
): Promise<T | string> {
  try {
    const { status, body } = await ask(place)
    if (status < 200 || status > 299) return `${place} answered ${status}`
    if (!isObject(body)) return `${place} answered ${status} without a JSON object`
    // `null` means absent in metadata (RFC 7591 §2, RFC 8414 §3.2).
    const taken = take(withoutNullEntries(body))
    return typeof taken === 'string' ? `${place} ${taken}` : taken
  } catch (error) {
    return messageOf(error)
  }
}

/**
 * Returns the possible URLs of an authorization server's metadata: with the path of the issuer inserted (RFC 8414 §3.1),
 * and with the path in front (OpenID Connect Discovery §4).
 */
export function metadataUrls(issuer: string): readonly string[] {
  const { origin, pathname } = new URL(issuer)
  const path = pathname.replace(/\/$/, '')
  const places = [
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}/.well-known/openid-configuration${path}`,
    `${origin}${path}/.well-known/openid-configuration`,
    `${origin}${path}/.well-known/oauth-authorization-server`,
  ]
  return [...new Set(places)]
}

const MAX_SHOWN = 200

/** Returns a value of metadata for a message. */
export function shownValue(value: unknown): string {
  return (JSON.stringify(value) ?? 'nothing').slice(0, MAX_SHOWN)
}
