import { ConfigError } from '@toolgate/core'

/** The host names and origins of this gateway. */
export interface OriginRules {
  /** In lower case, such as `127.0.0.1:8787`. */
  readonly hosts: ReadonlySet<string>
  /** Such as `http://127.0.0.1:8787`. */
  readonly origins: ReadonlySet<string>
  /** The origins of web pages that may call agent endpoints, such as `https://inspector.example.com`. */
  readonly pages: ReadonlySet<string>
}

interface OriginOptions {
  /** Where the server listens. */
  readonly host: string
  /** The port that the server has bound. */
  readonly port: number
  /** Whether the server uses HTTPS. */
  readonly isTls?: boolean
  /** Further origins, such as `https://tools.example.com` of a reverse proxy. */
  readonly origins?: readonly string[]
  /** The origins of `listen.corsOrigins`. */
  readonly corsOrigins?: readonly string[] | undefined
}

const LOOPBACK = ['127.0.0.1', 'localhost', '::1']
const ANY_ADDRESS: ReadonlySet<string> = new Set(['0.0.0.0', '::', ''])
const MAX_SHOWN = 100

/**
 * Returns the rules for a server that listens on `host:port`.
 *
 * @throws {ConfigError} for an origin that is not `http(s)://host[:port]`
 * @example
 * createOriginRules({ host: '127.0.0.1', port: 8787 }).origins // has 'http://localhost:8787'
 */
export function createOriginRules({
  host,
  port,
  isTls = false,
  origins = [],
  corsOrigins = [],
}: OriginOptions): OriginRules {
  const names = ANY_ADDRESS.has(host) ? LOOPBACK : [...LOOPBACK, host]
  const own = names.map(
    (name) => new URL(`${isTls ? 'https' : 'http'}://${name.includes(':') ? `[${name}]` : name}:${port}`),
  )
  const all = [...own, ...origins.map(parseOrigin)]
  return {
    hosts: new Set(all.flatMap(spellings)),
    origins: new Set(all.map((url) => url.origin)),
    pages: new Set(corsOrigins.map(parsePageOrigin)),
  }
}

/**
 * Checks the Host header (against DNS rebinding) and the Origin header (against foreign pages), separately. A request
 * without `Origin` does not come from another page.
 *
 * Returns the problem, if any.
 */
export function checkOrigin(
  headers: { readonly host?: string | undefined; readonly origin?: string | undefined },
  rules: OriginRules,
): { readonly header: 'Host' | 'Origin'; readonly message: string } | undefined {
  const { host, origin } = headers
  if (host === undefined || !rules.hosts.has(host.toLowerCase()))
    return { header: 'Host', message: `The Host header ${shown(host)} is not a name of this gateway.` }
  if (origin !== undefined && !rules.origins.has(origin))
    return { header: 'Origin', message: `The Origin header ${shown(origin)} is not a page of this gateway.` }
  return undefined
}

/**
 * Does the same for an agent endpoint, which the pages of `listen.corsOrigins` may call too. They need a key as everyone
 * does.
 */
export function checkAgentOrigin(
  headers: Parameters<typeof checkOrigin>[0],
  rules: OriginRules,
): ReturnType<typeof checkOrigin> {
  const { host, origin } = headers
  return checkOrigin(origin !== undefined && rules.pages.has(origin) ? { host } : headers, rules)
}

/** Whether a URL belongs to this gateway, with any scheme. Every name of loopback counts if the port matches. */
export function isOwnUrl({ hostname, host, port }: URL, rules: OriginRules, ownPort: number): boolean {
  const isHere = /^(?:127\.|0\.0\.0\.0$|\[::|localhost$|.*\.localhost$)/.test(hostname)
  return rules.hosts.has(host) || (isHere && port === String(ownPort))
}

function parseOrigin(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || !['http:', 'https:'].includes(url.protocol) || (text !== url.origin && text !== `${url.origin}/`))
    throw new ConfigError('origins', `"${text}" must be an origin, such as https://tools.example.com`)
  return url
}

/** Returns an origin as browsers send it. Schemes such as `vscode-webview` have no other form. */
function parsePageOrigin(text: string): string {
  const { protocol, host } = new URL(text)
  return `${protocol}//${host}`
}

/** Returns the host with and without the default port, which clients may leave out (RFC 9110 §7.2). */
function spellings(url: URL): string[] {
  return url.port === '' ? [url.hostname, `${url.hostname}:${url.protocol === 'https:' ? 443 : 80}`] : [url.host]
}

function shown(value: string | undefined): string {
  return value === undefined ? '(none)' : JSON.stringify(value.slice(0, MAX_SHOWN))
}
