import { connect } from 'node:net'
import type { Probe, ProbeAnswer, ProbeAsking } from '@toolgate/core/groups'
import { checkShape, errnoOf, shapeOf } from '@toolgate/values'

export interface TcpTarget {
  readonly host: string
  readonly port: number
}

export interface ProbeOptions {
  /** Default 1,000 ms. */
  readonly timeoutMs?: number | undefined
}

const TARGET = shapeOf<TcpTarget>({ host: true, port: true }, 'field')
const TCP_OPTIONS = shapeOf<ProbeOptions>({ timeoutMs: true })

/**
 * Returns a probe that checks whether something listens at an address. It connects and closes at once.
 *
 * @example
 * const browser = { tools: ['browser:*'], availableWhen: [tcpProbe({ host: '127.0.0.1', port: 4444 })] }
 */
export function tcpProbe(target: TcpTarget, options: ProbeOptions = {}): Probe {
  checkShape('tcpProbe', target, TARGET)
  checkShape('tcpProbe', options, TCP_OPTIONS)
  const { timeoutMs } = options
  const address = toAddress(target)
  return {
    key: `tcp ${address}`,
    kind: 'tcp',
    what: address,
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ask: (asking) => connectTo(target, asking),
  }
}

/** Returns `host:port`, with an IPv6 address in brackets. */
export function toAddress({ host, port }: TcpTarget): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

function connectTo(target: TcpTarget, { signal }: ProbeAsking): Promise<ProbeAnswer> {
  const { promise, resolve } = Promise.withResolvers<ProbeAnswer>()
  const socket = connect({ host: target.host, port: target.port, signal })
  socket.once('connect', () => settle(true))
  // `on`, not `once`: a destroyed socket may emit a second error.
  socket.on('error', (error: NodeJS.ErrnoException) =>
    settle({ available: false, reason: whyUnreachable(target, error) }),
  )
  return promise

  function settle(answer: ProbeAnswer): void {
    socket.destroy()
    resolve(answer)
  }
}

/** Returns why the connection failed, without a full stop. */
function whyUnreachable(target: TcpTarget, error: NodeJS.ErrnoException): string {
  const code = codeOf(error)
  if (code === 'ECONNREFUSED') return `nothing listens on ${toAddress(target)} (${code})`
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return `the name ${target.host} is not found (${code})`
  return `${toAddress(target)} cannot be reached (${code})`
}

/** Returns the code of an error. If a name has several addresses, the error contains one error for each. */
function codeOf(error: NodeJS.ErrnoException): string {
  const first: unknown = error instanceof AggregateError ? error.errors[0] : undefined
  return error.code ?? errnoOf(first) ?? error.name
}

export interface HttpProbeOptions extends ProbeOptions {
  /** The expected status. Default: any from 200 to 299. */
  readonly status?: number | readonly number[] | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
}

const HTTP_OPTIONS = shapeOf<HttpProbeOptions>({ timeoutMs: true, status: true, headers: true })

/**
 * Returns a probe that sends a GET and checks the status. Redirects are not followed, no body is read, and each check has
 * its own connection.
 *
 * @example
 * httpProbe('http://127.0.0.1:9200/_cluster/health', { status: 200, timeoutMs: 500 })
 */
export function httpProbe(url: string, options: HttpProbeOptions = {}): Probe {
  checkShape('httpProbe', options, HTTP_OPTIONS)
  const { timeoutMs, headers = {} } = options
  const target = new URL(url)
  const expected = [options.status ?? []].flat()
  return {
    key: `http ${JSON.stringify([target.href, expected, Object.entries(headers)])}`,
    kind: 'http',
    what: toShown(target),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ask: (asking) => request(target, expected, headers, asking),
  }
}

/** Returns the URL without its query and password, which may be secret. */
function toShown({ origin, pathname }: URL): string {
  return `${origin}${pathname === '/' ? '' : pathname}`
}

function request(
  target: URL,
  expected: readonly number[],
  headers: Readonly<Record<string, string>>,
  { signal }: ProbeAsking,
): Promise<ProbeAnswer> {
  const { promise, resolve } = Promise.withResolvers<ProbeAnswer>()
  // Loaded at the first probe, since importing node:http also loads `fetch`.
  const { request: send } = process.getBuiltinModule(target.protocol === 'https:' ? 'node:https' : 'node:http')
  const sent = send(target, { method: 'GET', agent: false, headers: { accept: '*/*', ...headers }, signal })
  sent.once('response', ({ statusCode = 0 }) => settle(judge(target, statusCode, expected)))
  // `on`, not `once`: a destroyed request may emit a second error.
  sent.on('error', (error: NodeJS.ErrnoException) => settle({ available: false, reason: why(target, error) }))
  sent.end()
  return promise

  function settle(answer: ProbeAnswer): void {
    // Only the status is needed. The body is not read.
    sent.destroy()
    resolve(answer)
  }
}

function judge(target: URL, status: number, expected: readonly number[]): ProbeAnswer {
  if (expected.length > 0 ? expected.includes(status) : status >= 200 && status <= 299) return true
  const wanted = expected.length > 0 ? expected.join(' or ') : '200 to 299'
  return { available: false, reason: `${toShown(target)} answers with status ${status}, not ${wanted}` }
}

/**
 * Returns the reason of a failure. System errors name the host; messages of the HTTP parser are replaced by their code.
 */
function why(target: URL, error: NodeJS.ErrnoException): string {
  if (error.code?.startsWith('HPE_')) return `${toShown(target)} does not speak HTTP (${error.code})`
  const port = Number(target.port) || (target.protocol === 'https:' ? 443 : 80)
  return whyUnreachable({ host: target.hostname.replace(/^\[(.*)\]$/, '$1'), port }, error)
}
