import { lookup, type LookupAddress, type LookupOptions } from 'node:dns'
import { lookup as resolveAll } from 'node:dns/promises'
import { BlockList, isIP, type LookupFunction } from 'node:net'
import { JsonFault, readJson, readUtf8 } from '@toolgate/values/json'
import { isLoopback } from '../../config/loopback.ts'
import { RequestFailed, requestBounded } from '../../util/bounded-request.ts'
import { bareHost, type NamedProxy, proxyFor, type ProxyRules } from '../../util/proxy-rules.ts'
import { ConnectProblem } from './problem.ts'

/** The options with which `oauth4webapi` calls it. */
interface FetchInit {
  readonly method?: string | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly body?: unknown
}
export type GuardedFetch = (url: string, init?: FetchInit) => Promise<Response>

interface GuardOptions {
  /** The hosts in the configuration. They may have private addresses, and use http on loopback. */
  readonly trusted: readonly string[]
  /** The time limit from the name look-up to the last byte. Default 5 s. */
  readonly timeoutMs?: number
  /** The maximum size of a body. Default 512 KiB. */
  readonly maxBytes?: number
  /** The proxy through which hosts are reached. */
  readonly proxy?: ProxyRules | undefined
  /** Certificates (PEM) of authorities that are also trusted for the hosts in the configuration. */
  readonly ca?: string | undefined
}

const TIMEOUT_MS = 5_000
const MAX_BYTES = 512 * 1024

/**
 * Returns a `fetch` for URLs that a server has named: https only, without redirects, and with limits for size and time.
 *
 * A host that the configuration does not name must have only public addresses. They are checked when the connection is
 * made, so that the name cannot resolve to another address after the check. A proxy looks the name up itself: then only
 * a name that cannot be public, or that resolves here to a private address, is refused.
 *
 * @throws {ConnectProblem}
 */
export function createGuardedFetch({
  trusted,
  timeoutMs = TIMEOUT_MS,
  maxBytes = MAX_BYTES,
  proxy,
  ca,
}: GuardOptions): GuardedFetch {
  const known = new Set(trusted)
  const fetch: GuardedFetch = async (text, { method = 'GET', headers = {}, body } = {}) => {
    const url = checkUrl(text, known)
    const isTrusted = known.has(url.hostname)
    const options = { method, headers, isTrusted, timeoutMs, maxBytes, proxy: proxyFor(proxy, url), ca }
    return send(url, options, typeof body === 'string' || body instanceof URLSearchParams ? String(body) : undefined)
  }
  return fetch
}

/** @throws {ConnectProblem} */
function checkUrl(text: string, trusted: ReadonlySet<string>): URL {
  const url = URL.parse(text)
  if (!url || url.username !== '' || url.password !== '') throw new ConnectProblem(`${shown(text)} is no URL to ask`)
  const host = bare(url.hostname)
  const isTrusted = trusted.has(url.hostname)
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && isTrusted && isLoopback(host)))
    throw new ConnectProblem(`${shown(text)} is not https`)
  if (!isTrusted && isIP(host) !== 0 && !isPublic(host)) throw notPublic(url.hostname)
  return url
}

interface SendOptions extends Required<Pick<GuardOptions, 'timeoutMs' | 'maxBytes'>> {
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly isTrusted: boolean
  readonly proxy: NamedProxy | undefined
  readonly ca: string | undefined
}

async function send(url: URL, options: SendOptions, body: string | undefined): Promise<Response> {
  const { isTrusted, proxy, ca, ...request } = options
  if (proxy && !isTrusted) await checkPublicName(url.hostname)
  try {
    const answer = await requestBounded(url, {
      ...request,
      body,
      proxy,
      ...(isTrusted ? { ca } : { lookup: lookupPublic }),
    })
    const read = JSON_TYPE.test(answer.contentType) ? rewritten(answer.bytes) : answer.bytes
    return toResponse(answer.status, answer.rawHeaders, read)
  } catch (error) {
    throw toProblem(error, `${url.origin}${url.pathname}`)
  }
}

function toProblem(error: unknown, place: string): unknown {
  if (error instanceof JsonFault) return new ConnectProblem(`${place} answered JSON that ${error.problem}`)
  if (!(error instanceof RequestFailed)) return error
  return error.cause instanceof ConnectProblem ? error.cause : new ConnectProblem(error.message, { cause: error })
}

const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json\b/i

/**
 * Parses JSON strictly and writes it again, so that `oauth4webapi`, which parses it too, reads the same values. @throws
 * {JsonFault}
 */
function rewritten(bytes: Buffer): Buffer {
  return bytes.length === 0 ? bytes : Buffer.from(JSON.stringify(readJson(readUtf8(bytes))))
}

const WITHOUT_BODY: ReadonlySet<number> = new Set([204, 205, 304])

function toResponse(status: number, raw: readonly string[], body: Buffer): Response {
  const headers = new Headers()
  for (let i = 0; i + 1 < raw.length; i += 2) headers.append(raw[i] as string, raw[i + 1] as string)
  return new Response(WITHOUT_BODY.has(status) ? null : new Uint8Array(body), { status, headers })
}

/** Resolves a name for a connection, but only if all of its addresses are public. */
const lookupPublic: LookupFunction = (hostname, options, callback) => {
  const all: LookupOptions & { all: true } = { ...options, all: true }
  lookup(hostname, all, (error, addresses: LookupAddress[]) => {
    const [first] = addresses ?? []
    if (error ?? !first) return callback(error ?? notPublic(hostname), '', 0)
    if (!addresses.every(({ address }) => isPublic(address))) return callback(notPublic(hostname), '', 0)
    if (options.all) callback(null, addresses)
    else callback(null, first.address, first.family)
  })
}

/** Names that no public host has (RFC 6761, RFC 6762, RFC 8375, and ICANN's `internal`). */
const PRIVATE_NAME = /^[^.]*$|\.(?:localhost|local|internal|intranet|lan|home|corp|home\.arpa|test|invalid|onion)$/
const LOOK_UP_MS = 1_000

/**
 * Refuses a name that is known not to be public. A network behind a proxy often resolves no public names, so that a name
 * without an address is left to the proxy.
 *
 * @throws {ConnectProblem}
 */
async function checkPublicName(hostname: string): Promise<void> {
  const host = bareHost(hostname)
  if (isIP(host) !== 0) return
  if (PRIVATE_NAME.test(host)) throw notPublic(hostname)
  const { promise: late, resolve } = Promise.withResolvers<readonly LookupAddress[]>()
  const timer = setTimeout(resolve, LOOK_UP_MS, [])
  const addresses = await Promise.race([resolveAll(host, { all: true }).catch(() => []), late])
  clearTimeout(timer)
  if (!addresses.every(({ address }) => isPublic(address))) throw notPublic(hostname)
}

function notPublic(host: string): ConnectProblem {
  return new ConnectProblem(`${host} has an address that is not public; name it as "issuer" in the configuration`)
}

/** IANA's special-purpose IPv4 addresses. */
const PRIVATE = toBlockList('ipv4', [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
])
/** Global unicast IPv6, without documentation addresses and prefixes that contain an IPv4 address. */
const GLOBAL = toBlockList('ipv6', [['2000::', 3]])
const NOT_GLOBAL = toBlockList('ipv6', [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
])

function toBlockList(family: 'ipv4' | 'ipv6', nets: readonly (readonly [string, number])[]): BlockList {
  const list = new BlockList()
  for (const [net, prefix] of nets) list.addSubnet(net, prefix, family)
  return list
}

/** Returns whether an IP address is on the public internet. */
export function isPublic(address: string): boolean {
  if (isIP(address) === 4) return !PRIVATE.check(address, 'ipv4')
  return GLOBAL.check(address, 'ipv6') && !NOT_GLOBAL.check(address, 'ipv6')
}

/** Returns the host of a URL without the brackets of IPv6. */
function bare(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '')
}

function shown(text: string): string {
  return JSON.stringify(text.slice(0, 200))
}
