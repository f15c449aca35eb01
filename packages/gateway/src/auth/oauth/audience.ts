import type { JWTPayload } from 'jose'

/**
 * Returns the paths of the endpoints that an audience names. An audience in the configured list opens every endpoint.
 */
export function toPaths(
  aud: JWTPayload['aud'],
  listed: readonly string[],
  publicUrl: string,
): readonly string[] | undefined {
  const audiences = [aud ?? []].flat()
  if (audiences.some((one) => listed.includes(one))) return undefined
  const own = audiences.filter((one) => typeof one === 'string' && one.startsWith(`${publicUrl}/`))
  return own.map((one) => one.slice(publicUrl.length))
}

const MAX_SHOWN = 200

/** Returns a value of a token for the log, as truncated JSON. */
export function shown(value: unknown): string {
  return (JSON.stringify(value) ?? 'absent').slice(0, MAX_SHOWN)
}
