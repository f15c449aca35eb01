import { lookup, type LookupAddress, type LookupOptions } from 'node:dns'
import { BlockList, isIP, type LookupFunction } from 'node:net'
import { JsonFault, readJson, readUtf8 } from '@toolgate/values/json'
import { isLoopback } from '../../config/loopback.ts'
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
}

const TIMEOUT_MS = 5_000
const MAX_BYTES = 512 * 1024

/**
 * Returns a `fetch` for URLs that a server has named: https only, without redirects, and with limits for size and time.
 *
 * A host that the configuration does not name must have only public addresses. They are checked when the connection is
 * made, so that the name cannot resolve to another address after the check.
 *
 * @throws {ConnectProblem}
 */
export function createGuardedFetch({ trusted, timeoutMs = TIMEOUT_MS, maxBytes = MAX_BYTES }: GuardOptions) {
  const known = new Set(trusted)
  const fetch: GuardedFetch = async (text, { method = 'GET', headers = {}, body } = {}) => {
    const url = checkUrl(text, known)
    const options = { method, headers, isTrusted: known.has(url.hostname), timeoutMs, maxBytes }
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
}

async function send(url: URL, options: SendOptions, body: string | undefined): Promise<Response> {
  const { method, headers, isTrusted, timeoutMs, maxBytes } = options
  const { request } = await (url.protocol === 'https:' ? import('node:https') : import('node:http'))
  const { promise, resolve, reject } = Promise.withResolvers<Response>()
  const place = `${url.origin}${url.pathname}`
  const asked = request(url, {
    method,
    headers: { ...headers, ...(body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }) },
    agent: false,
    ...(isTrusted ? {} : { lookup: lookupPublic }),
  })
  const fail = (error: Error) => {
    asked.destroy()
    reject(error instanceof ConnectProblem ? error : new ConnectProblem(`${place} cannot be reached`, { cause: error }))
  }
  const timer = setTimeout(() => fail(new ConnectProblem(`${place} did not answer within ${timeoutMs} ms`)), timeoutMs)
  asked.on('error', fail)
  asked.on('response', (answer) => {
    const chunks: Buffer[] = []
    let size = 0
    answer.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size > maxBytes) fail(new ConnectProblem(`${place} answered more than ${maxBytes} bytes`))
      else chunks.push(chunk)
    })
    answer.on('error', fail)
    answer.on('end', () => {
      try {
        const bytes = Buffer.concat(chunks)
        const read = JSON_TYPE.test(answer.headers['content-type'] ?? '') ? rewritten(bytes) : bytes
        resolve(toResponse(answer.statusCode ?? 0, answer.rawHeaders, read))
      } catch (error) {
        fail(
          error instanceof JsonFault
            ? new ConnectProblem(`${place} answered JSON that ${error.problem}`)
            : (error as Error),
        )
      }
    })
  })
  asked.end(body)
  return promise.finally(() => clearTimeout(timer))
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
