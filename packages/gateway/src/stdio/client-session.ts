import { setTimeout as sleep } from 'node:timers/promises'
import { isObject, type JsonObject } from '@toolgate/values/json'
import type { Session } from '../servers/transport/http-endpoint.ts'
import { reopenDelayMs } from '../servers/transport/lines.ts'
import type { GatewayLink } from './gateway-link.ts'
import { claimedVersion, type ClientRequest, encodeNotification, readMessage } from './messages.ts'

interface SessionPorts {
  readonly link: GatewayLink
  /** Passes on a message that belongs to no request. */
  readonly forward: (message: JsonObject, text: string) => void
  readonly log: (text: string) => void
}

const LISTS: ReadonlySet<string> = new Set(['tools', 'resources', 'prompts'])
/** Requests whose effect the gateway stores in a session. */
const SHAPING: ReadonlySet<string> = new Set(['logging/setLevel', 'resources/subscribe'])
const FIRST_DELAY_MS = 500

/**
 * The client's session, in revisions of MCP that have sessions. If the gateway no longer knows it, for example after a
 * restart, a new session begins with the client's first requests.
 */
export class ClientSession {
  readonly #ports: SessionPorts
  #current: Session
  /** The client's `initialize`, and the requests that changed its session. */
  #begun: ClientRequest | undefined
  readonly #standing = new Map<string, ClientRequest>()
  #renewing: Promise<boolean> | undefined
  #listening: AbortController | undefined

  constructor(ports: SessionPorts) {
    this.#ports = ports
    this.#current = ports.link.endpoint.bareSession('legacy')
  }

  get current(): Session {
    return this.#current
  }

  get isBegun(): boolean {
    return this.#begun !== undefined
  }

  /** Returns the session for a request. Requests of MCP 2026-07-28 and later have none. */
  of(request: Pick<ClientRequest, 'method' | 'params'>): Session {
    const { endpoint } = this.#ports.link
    const version = claimedVersion(request)
    if (version === undefined) return request.method === 'initialize' ? endpoint.bareSession('legacy') : this.#current
    const { headers } = endpoint.bareSession('legacy')
    return { era: 'modern', id: undefined, headers: [...headers, 'mcp-protocol-version', version] }
  }

  /** Stores the session data from an answer. */
  answered(request: ClientRequest, message: JsonObject, sessionId: string | undefined): void {
    const { method } = request
    const result = message['result']
    if (method === 'initialize' && isObject(result)) this.#begin(request, result, sessionId)
    else if (SHAPING.has(method) && 'result' in message) this.#standing.set(keyOf(request), request)
    if (method === 'resources/unsubscribe') this.#standing.delete(keyOf({ ...request, method: 'resources/subscribe' }))
  }

  /** Keeps the stream open on which the gateway sends messages that belong to no request. */
  async listen(): Promise<void> {
    const session = this.#current
    const { link } = this.#ports
    this.#listening?.abort()
    const listening = (this.#listening = new AbortController())
    for (let delayMs = FIRST_DELAY_MS; !listening.signal.aborted;) {
      const stream = link.endpoint.exchange({ method: 'GET', headers: session.headers }, this.#onEvent)
      listening.signal.addEventListener('abort', stream.abort, { once: true })
      const answer = await stream.answer.catch(() => undefined)
      listening.signal.removeEventListener('abort', stream.abort)
      if (listening.signal.aborted) return
      if (answer?.status === 404) return void (await this.renew(session))
      if (answer && (answer.status !== 200 || answer.contentType !== 'text/event-stream') && answer.status < 500) return
      delayMs = reopenDelayMs(answer?.status === 200 ? answer.retryMs : delayMs * 2)
      await sleep(delayMs, undefined, { ref: false, signal: listening.signal }).catch(() => {})
    }
  }

  /** Begins a new session, once for all requests that lost the same one. Returns whether there is one. */
  async renew(lost: Session): Promise<boolean> {
    if (lost !== this.#current) return true
    this.#renewing ??= this.#renewOnce().finally(() => (this.#renewing = undefined))
    return this.#renewing
  }

  /** Closes the stream. */
  stop(): void {
    this.#listening?.abort()
  }

  #begin(request: ClientRequest, result: JsonObject, sessionId: string | undefined): void {
    const version = typeof result['protocolVersion'] === 'string' ? result['protocolVersion'] : ''
    this.#begun = request
    this.#standing.clear()
    this.#current = this.#ports.link.endpoint.legacySession(version, sessionId)
  }

  async #renewOnce(): Promise<boolean> {
    const { link, forward, log } = this.#ports
    const begun = this.#begun
    if (!begun) return false
    const opened = await link.ask(begun, link.endpoint.bareSession('legacy'))
    const result = opened?.message['result']
    if (!opened || !isObject(result)) return false
    const standing = [...this.#standing.values()]
    this.#begin(begun, result, opened.sessionId)
    await link.forward(encodeNotification('notifications/initialized'), this.#current)
    for (const request of standing) {
      await link.ask(request, this.#current)
      this.#standing.set(keyOf(request), request)
    }
    log('The gateway began a new session.')
    void this.listen()
    // Changes in between were not announced.
    for (const list of Object.keys(isObject(result['capabilities']) ? result['capabilities'] : {}))
      if (LISTS.has(list)) {
        const changed = { jsonrpc: '2.0', method: `notifications/${list}/list_changed` }
        forward(changed, JSON.stringify(changed))
      }
    return true
  }

  readonly #onEvent = (text: string): void => {
    const message = readMessage(text)
    if (message) this.#ports.forward(message, text)
  }
}

function keyOf({ method, params }: ClientRequest): string {
  return method === 'logging/setLevel' ? method : `${method} ${String(params['uri'])}`
}
