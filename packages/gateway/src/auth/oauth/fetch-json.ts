import { messageOf } from '@toolgate/values'
import { readJson, readUtf8 } from '@toolgate/values/json'
import { requestBounded } from '../../util/bounded-request.ts'
import { connectionReason } from '../../util/connection-reasons.ts'
import { type NamedProxy, proxyFor, type ProxyRules } from '../../util/proxy-rules.ts'

/** Why an authorization server returned no usable answer. */
export class IssuerError extends Error {
  override readonly name = 'IssuerError'
}

interface JsonAnswer {
  readonly status: number
  /** Absent unless the answer is JSON. */
  readonly body?: unknown
}

const TIMEOUT_MS = 5_000
const MAX_BYTES = 512 * 1024

interface JsonRequest {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** The proxy through which authorization servers are reached. */
  readonly proxy?: ProxyRules | undefined
}

/**
 * Returns the JSON answer of an authorization server. It does not follow redirects and reads at most 512 KiB in 5 s.
 *
 * @throws {IssuerError}
 */
export async function fetchJson(url: string, { proxy: rules, ...request }: JsonRequest = {}): Promise<JsonAnswer> {
  const proxy = proxyFor(rules, new URL(url))
  const init = { ...request, headers: { accept: 'application/json', ...request.headers } }
  return proxy ? fetchThrough(proxy, url, init) : fetchDirectly(url, init)
}

async function fetchThrough(proxy: NamedProxy, url: string, init: JsonInit): Promise<JsonAnswer> {
  try {
    const bounds = { timeoutMs: TIMEOUT_MS, maxBytes: MAX_BYTES }
    const { status, bytes } = await requestBounded(new URL(url), { method: 'GET', ...init, ...bounds, proxy })
    return { status, ...toBody(bytes) }
  } catch (error) {
    throw new IssuerError(messageOf(error), { cause: error })
  }
}

type JsonInit = JsonRequest & { readonly headers: Readonly<Record<string, string>> }

async function fetchDirectly(url: string, init: JsonInit): Promise<JsonAnswer> {
  try {
    const response = await fetch(url, { ...init, redirect: 'manual', signal: AbortSignal.timeout(TIMEOUT_MS) })
    return { status: response.status, ...toBody(await readBytes(response)) }
  } catch (error) {
    if (error instanceof IssuerError) throw error
    const isLate = error instanceof Error && error.name === 'TimeoutError'
    const reason = error instanceof Error ? connectionReason(error.cause) : undefined
    const why = reason === undefined ? '' : `: it ${reason}`
    throw new IssuerError(isLate ? `${url} did not answer within ${TIMEOUT_MS} ms` : `${url} cannot be reached${why}`, {
      cause: error,
    })
  }
}

async function readBytes(response: Response): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength
    if (size > MAX_BYTES) throw new IssuerError(`${response.url} answered more than ${MAX_BYTES} bytes`)
    chunks.push(chunk as Uint8Array)
  }
  return Buffer.concat(chunks)
}

function toBody(bytes: Uint8Array): { readonly body?: unknown } {
  try {
    return { body: readJson(readUtf8(bytes)) }
  } catch {
    return {}
  }
}
