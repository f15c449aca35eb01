import { BlockList, isIP } from 'node:net'

/** A proxy, with the key or the variable that names it. */
export interface NamedProxy {
  /** May contain a user and a password. Never log or show it. */
  readonly url: string
  readonly from: string
}

/** Which proxy reaches a URL. It is plain data, so that two configurations can be compared. */
export interface ProxyRules {
  /** Reaches URLs with http. */
  readonly http?: NamedProxy
  /** Reaches URLs with https. */
  readonly https?: NamedProxy
  /** The hosts that are reached directly, as in `NO_PROXY`. */
  readonly except: readonly string[]
}

type ProxyVariables = Readonly<Record<string, string | undefined>>

/** Returns the proxies that an environment names, or `undefined` if it names none. */
export function proxiesOf(env: ProxyVariables): ProxyRules | undefined {
  const all = ['all_proxy', 'ALL_PROXY']
  const http = proxyIn(env, ['http_proxy', 'HTTP_PROXY', ...all])
  const https = proxyIn(env, ['https_proxy', 'HTTPS_PROXY', ...all])
  if (!http && !https) return undefined
  return { ...(http && { http }), ...(https && { https }), except: [...THIS_MACHINE, ...exceptionsOf(env)] }
}

/** Returns the entries of `NO_PROXY`. */
export function exceptionsOf(env: ProxyVariables): readonly string[] {
  const text = env['no_proxy'] ?? env['NO_PROXY'] ?? ''
  return text.split(/[\s,]+/).filter((entry) => entry !== '')
}

/** A proxy would reach its own machine at these. */
export const THIS_MACHINE: readonly string[] = ['localhost', '127.0.0.0/8', '0.0.0.0', '::1', '::']

/** The first variable that is set decides. An empty one means that there is no proxy. */
function proxyIn(env: ProxyVariables, names: readonly string[]): NamedProxy | undefined {
  const from = names.find((name) => env[name] !== undefined)
  const url = from === undefined ? '' : (env[from]?.trim() ?? '')
  return from === undefined || url === '' ? undefined : { url, from }
}

/** Returns the URL of a proxy, or `undefined` if it is not one of http or https. The scheme may be left out. */
export function parseProxy(text: string): URL | undefined {
  const url = URL.parse(text.includes('://') ? text : `http://${text}`)
  const isProxy = url !== null && /^https?:$/.test(url.protocol) && url.pathname === '/' && url.search === ''
  return isProxy && url.hash === '' ? url : undefined
}

/** Returns the proxy that reaches a URL, or `undefined` if it is reached directly. */
export function proxyFor(rules: ProxyRules | undefined, url: URL): NamedProxy | undefined {
  const proxy = url.protocol === 'https:' ? rules?.https : rules?.http
  if (!rules || !proxy) return undefined
  return rules.except.some((entry) => isAbout(entry, url)) ? undefined : proxy
}

/** Whether a text is an entry of `NO_PROXY`: a name, an address or a range, with a port or without. */
export function isException(entry: string): boolean {
  return RANGE.test(entry) || HOST_PORT.test(entry) || isIP(entry) !== 0
}

/** Whether an entry of `NO_PROXY` is about the host of a URL. */
function isAbout(entry: string, url: URL): boolean {
  const host = bareHost(url.hostname)
  const [, range, bits] = RANGE.exec(entry) ?? []
  if (range !== undefined) return isInRange(host, range, Number(bits))
  const [, bracketed, plain, port] = HOST_PORT.exec(entry) ?? [entry, undefined, entry]
  if (port !== undefined && port !== portOf(url)) return false
  const name = (bracketed ?? plain ?? '').toLowerCase().replace(/\.$/, '')
  if (isIP(name) !== 0) return isIP(host) !== 0 && isInRange(host, name, isIP(name) === 4 ? 32 : 128)
  return isNamed(host, name)
}

const RANGE = /^\[?([\da-f.:]+)\]?\/(\d{1,3})$/i
/** A host with a port at most. An IPv6 address with a port needs brackets. */
const HOST_PORT = /^(?:\w+:\/\/)?(?:\[([\da-f:.]+)\]|([^\s:/]+))(?::(\d+))?\/?$/i

function isNamed(host: string, name: string): boolean {
  const subdomainsOf = name.startsWith('*.') ? name.slice(2) : undefined
  if (subdomainsOf !== undefined && !subdomainsOf.includes('*')) return host.endsWith(`.${subdomainsOf}`)
  if (name.includes('*')) return isLike(host, name)
  const domain = name.replace(/^\./, '')
  return domain !== '' && (host === domain || (isIP(host) === 0 && host.endsWith(`.${domain}`)))
}

/** Whether a host is like `192.168.*`. */
function isLike(host: string, pattern: string): boolean {
  const parts = pattern.split('*').map((part) => part.replaceAll(/[\\^$.|?+()[\]{}]/g, '\\$&'))
  return new RegExp(`^${parts.join('[^]*')}$`).test(host)
}

function isInRange(host: string, range: string, bits: number): boolean {
  const [family, rangeFamily] = [isIP(host), isIP(range)]
  if (family === 0 || rangeFamily === 0 || bits > (rangeFamily === 4 ? 32 : 128)) return false
  const list = new BlockList()
  list.addSubnet(range, bits, rangeFamily === 4 ? 'ipv4' : 'ipv6')
  return list.check(host, family === 4 ? 'ipv4' : 'ipv6')
}

/** Returns the user or the password of a URL as a text. One that is wrongly encoded stays as it is. */
export function decodedPart(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Returns the host of a URL without the brackets of IPv6 and without the dot at the end of a name. */
export function bareHost(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')
}

/** Returns the port of a URL, also if it is that of the protocol. */
export function portOf({ port, protocol }: URL): string {
  return port || (protocol === 'https:' ? '443' : '80')
}
