import { clip } from './json-rpc.ts'

/** Says that the request was not processed, and is to be sent to another URL with the same method (RFC 9110 §15.4). */
const SAME_METHOD: ReadonlySet<number> = new Set([307, 308])
/** Clients may change POST to GET, so that a server may have processed the request. */
const OTHER_METHOD: ReadonlySet<number> = new Set([301, 302])

interface RedirectedRequest {
  /** Where the request was sent. */
  readonly url: URL
  /** Whether the request may be sent twice, as it starts no work. */
  readonly isRepeatable: boolean
}

/**
 * Returns the path and query to which a redirect moves a server, or `undefined` if it is not followed. It is followed
 * to the same origin if the path differs by the slash at its end alone, as many frameworks redirect `/mcp` to `/mcp/`.
 */
export function pathOfRedirect(
  { status, location }: { readonly status: number; readonly location: string | undefined },
  { url, isRepeatable }: RedirectedRequest,
): string | undefined {
  if (!SAME_METHOD.has(status) && !(isRepeatable && OTHER_METHOD.has(status))) return undefined
  const to = location === undefined ? null : URL.parse(location, url.href)
  if (!to || to.origin !== url.origin || !differsBySlash(to, url) || to.username !== '' || to.password !== '')
    return undefined
  return `${to.pathname}${to.search === '' ? url.search : to.search}`
}

/** Returns the reason for a redirect that is not followed. */
export function redirectProblem(location: string, from: URL | undefined): string {
  const to = URL.parse(location, from?.href)
  if (!to || !/^https?:$/.test(to.protocol)) return 'redirects to an address that is not one of http or https'
  const { origin, pathname } = to
  const target = `redirects to ${clip(`${origin}${pathname}`, MAX_SHOWN)}`
  return from && isBehindTls(to, from)
    ? `${target}; write ${from.origin}${pathname} as "url"`
    : `${target}; write that as "url"`
}

const MAX_SHOWN = 200

/** A server behind a proxy that ends TLS often names http. */
function isBehindTls(to: URL, from: URL): boolean {
  const isDowngrade = from.protocol === 'https:' && to.protocol === 'http:' && to.hostname === from.hostname
  return isDowngrade && differsBySlash(to, from)
}

function differsBySlash(to: URL, from: URL): boolean {
  const isSamePath = to.pathname === `${from.pathname}/` || `${to.pathname}/` === from.pathname
  return isSamePath && (to.search === from.search || to.search === '')
}
