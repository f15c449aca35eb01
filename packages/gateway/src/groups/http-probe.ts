import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import type { Probe, ProbeAnswer, ProbeAsking } from '@toolgate/core/groups'
import { checkShape, shapeOf } from '@toolgate/core/internal'
import { type ProbeOptions, whyUnreachable } from './tcp-probe.ts'

export interface HttpProbeOptions extends ProbeOptions {
  /** What it must answer with. Default: any status from 200 to 299. */
  readonly status?: number | readonly number[] | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
}

const OPTIONS = shapeOf<HttpProbeOptions>({ timeoutMs: true, status: true, headers: true })

/**
 * Asks with a GET whether a URL answers as it should. Redirects are answers and are not followed; no body is read; each
 * ask is a connection of its own.
 *
 * @example
 * httpProbe('http://127.0.0.1:9200/_cluster/health', { status: 200, timeoutMs: 500 })
 */
export function httpProbe(url: string, options: HttpProbeOptions = {}): Probe {
  checkShape('httpProbe', options, OPTIONS)
  const { timeoutMs, headers = {} } = options
  const target = new URL(url)
  const expected = [options.status ?? []].flat()
  return {
    key: `http ${JSON.stringify([target.href, expected, Object.entries(headers)])}`,
    kind: 'http',
    what: toShown(target),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ask: (asking) => ask(target, expected, headers, asking),
  }
}

/** What a query or a password holds is nobody's business. */
function toShown({ origin, pathname }: URL): string {
  return `${origin}${pathname === '/' ? '' : pathname}`
}

function ask(
  target: URL,
  expected: readonly number[],
  headers: Readonly<Record<string, string>>,
  { signal }: ProbeAsking,
): Promise<ProbeAnswer> {
  const { promise, resolve } = Promise.withResolvers<ProbeAnswer>()
  const request = target.protocol === 'https:' ? requestHttps : requestHttp
  const sent = request(target, { method: 'GET', agent: false, headers: { accept: '*/*', ...headers }, signal })
  sent.once('response', ({ statusCode = 0 }) => settle(judge(target, statusCode, expected)))
  // `on`, not `once`: a request that is torn down may tell of a second error.
  sent.on('error', (error: NodeJS.ErrnoException) => settle({ available: false, reason: why(target, error) }))
  sent.end()
  return promise

  function settle(answer: ProbeAnswer): void {
    // The status says it all: what comes after it is not read, however much it is.
    sent.destroy()
    resolve(answer)
  }
}

function judge(target: URL, status: number, expected: readonly number[]): ProbeAnswer {
  if (expected.length > 0 ? expected.includes(status) : status >= 200 && status <= 299) return true
  const wanted = expected.length > 0 ? expected.join(' or ') : '200 to 299'
  return { available: false, reason: `${toShown(target)} answers with status ${status}, not ${wanted}` }
}

/** Errors of the system name the host; what an HTTP parser says is for people. */
function why(target: URL, error: NodeJS.ErrnoException): string {
  if (error.code?.startsWith('HPE_')) return `${toShown(target)} does not speak HTTP (${error.code})`
  const port = Number(target.port) || (target.protocol === 'https:' ? 443 : 80)
  return whyUnreachable({ host: target.hostname.replace(/^\[(.*)\]$/, '$1'), port }, error)
}
