import { CliError } from './exit.ts'

/** The URL of `toolgate try`, and of a configuration without `listen`. */
export const DEFAULT_URL = 'http://127.0.0.1:8787'

const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/

export function isLoopbackUrl(url: string): boolean {
  return LOOPBACK.test(new URL(url).hostname)
}

/** @throws {CliError} `usage` */
export function parseUrl(text: string): URL {
  const url = URL.parse(text)
  if (url && /^https?:$/.test(url.protocol)) return url
  throw new CliError('usage', `The address ${JSON.stringify(text)} is not a URL such as ${DEFAULT_URL}.`)
}

/**
 * Returns the MCP endpoint at a gateway's address: `/mcp`, or that of an app. An address with a path is used unchanged.
 */
export function mcpUrlOf(address: string, app?: string): URL {
  const url = parseUrl(address)
  if (url.pathname === '/') url.pathname = '/mcp'
  if (app !== undefined) url.pathname = `${url.pathname.replace(/\/$/, '')}/${encodeURIComponent(app)}`
  return url
}

/** Returns the address at which a configuration is served, as seen from this machine. */
export function listenUrlOf({
  host,
  port,
  tls,
}: {
  readonly host: string
  readonly port: number
  readonly tls?: object
}): string {
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  return `${tls ? 'https' : 'http'}://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`
}
