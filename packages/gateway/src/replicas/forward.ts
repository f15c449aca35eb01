import type { Agent, ClientRequest, IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { errnoOf } from '@toolgate/values'
import { RpcFault } from '../model/protocol.ts'
import { FORWARDED_HEADER } from './forward-proof.ts'

/** A client's request that another replica should answer. */
interface Forwarded {
  readonly request: IncomingMessage
  /** The text of the body. Absent for a request without a body. */
  readonly text: string | undefined
  readonly response: ServerResponse
  readonly url: string
  /** The value of the header that proves that a replica forwards it. */
  readonly proof: string
}

/** `answered`: the client has its answer. `gone`: nothing was sent. `elsewhere`: the replica does not own it now. */
type ForwardResult = 'answered' | 'gone' | 'elsewhere'

/** The maximum number of connections from one replica to all others. Each stream needs one. */
const MAX_OPEN = 1024
const MAX_IDLE = 64
/** The time limit for silence. Streams send signs of life more often. */
const SILENT_MS = 120_000
const CONNECT_MS = 1000
/** RFC 9110 §15.5.20. */
const MISDIRECTED = 421

/** Headers for one connection only (RFC 9110 §7.6.1). */
const HOP_HEADERS = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'content-length',
  'expect',
  FORWARDED_HEADER,
])

/** The connections from a replica to the others. */
export class Forwarder {
  readonly #agents = new Map<string, Agent>()
  #open = 0

  /**
   * Forwards a request to another replica, and passes its answer on as it arrives. When one side ends, the other ends
   * too.
   *
   * @throws {RpcFault} `owner_lost`, `owner_unreachable`
   */
  async send(forwarded: Forwarded): Promise<ForwardResult> {
    if (this.#open >= MAX_OPEN) throw unreachable('Too many requests wait for other replicas.')
    this.#open++
    try {
      return await this.#send(forwarded)
    } finally {
      this.#open--
    }
  }

  close(): void {
    for (const agent of this.#agents.values()) agent.destroy()
  }

  async #send({ request, text, response, url, proof }: Forwarded): Promise<ForwardResult> {
    const target = new URL(url)
    const body = text === undefined ? undefined : Buffer.from(text)
    const outgoing = this.#moduleOf(target).request({
      host: target.hostname.replaceAll(/[[\]]/g, ''),
      port: target.port,
      method: request.method,
      path: request.url,
      headers: {
        ...endToEnd(request.headers),
        [FORWARDED_HEADER]: proof,
        ...(body && { 'content-length': body.byteLength }),
      },
      agent: this.#agentOf(target),
    })
    const clientLeft = () => {
      if (!response.writableFinished) outgoing.destroy()
    }
    response.once('close', clientLeft)
    try {
      const answer = await answerOf(outgoing, body)
      if (answer === undefined) return 'gone'
      if (answer.statusCode === MISDIRECTED) {
        answer.resume()
        return 'elsewhere'
      }
      await pass(answer, response)
      return 'answered'
    } finally {
      response.off('close', clientLeft)
    }
  }

  #moduleOf({ protocol }: URL): typeof import('node:http') | typeof import('node:https') {
    return process.getBuiltinModule(protocol === 'https:' ? 'node:https' : 'node:http')
  }

  #agentOf(target: URL): Agent {
    const known = this.#agents.get(target.origin)
    if (known) return known
    // Replicas are added and removed, and their addresses with them.
    for (const [origin, agent] of this.#agents)
      if (Object.keys(agent.sockets).length === 0) {
        agent.destroy()
        this.#agents.delete(origin)
      }
    const made = new (this.#moduleOf(target).Agent)({
      keepAlive: true,
      maxFreeSockets: MAX_IDLE,
      timeout: SILENT_MS,
    })
    this.#agents.set(target.origin, made)
    return made
  }
}

/** Sends a request. Returns its answer; `undefined` if no connection was possible. */
function answerOf(outgoing: ClientRequest, body: Buffer | undefined): Promise<IncomingMessage | undefined> {
  return new Promise((resolve, reject) => {
    let isConnected = false
    outgoing.once('response', resolve)
    outgoing.on('timeout', () => outgoing.destroy(new Error('it is silent')))
    outgoing.on('error', (error) => {
      if (!isConnected || errnoOf(error) === 'ECONNREFUSED') resolve(undefined)
      else reject(new RpcFault('owner_lost', 'The replica that served this request is gone.'))
    })
    outgoing.once('socket', (socket) => {
      const connected = () => {
        clearTimeout(late)
        isConnected = true
        outgoing.end(body)
      }
      const late = setTimeout(() => outgoing.destroy(new Error('it does not take the connection')), CONNECT_MS).unref()
      if (!socket.connecting) return connected()
      socket.once(
        socket instanceof process.getBuiltinModule('node:tls').TLSSocket ? 'secureConnect' : 'connect',
        connected,
      )
    })
  })
}

/** Passes each part of an answer on at once. */
function pass(answer: IncomingMessage, response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    response.writeHead(answer.statusCode ?? 502, endToEnd(answer.headers, answer.headers['content-length']))
    response.flushHeaders()
    answer.pipe(response)
    // The rest will not arrive, and the client must not take the part for the whole answer.
    answer.once('error', () => response.destroy())
    answer.once('close', () => {
      if (!answer.complete) response.destroy()
      resolve()
    })
  })
}

function endToEnd(headers: IncomingHttpHeaders, length?: string): IncomingHttpHeaders {
  const named = new Set((headers.connection ?? '').toLowerCase().split(/\s*,\s*/))
  const kept = Object.entries(headers).filter(([name]) => !HOP_HEADERS.has(name) && !named.has(name))
  return { ...Object.fromEntries(kept), ...(length !== undefined && { 'content-length': length }) }
}

export function unreachable(message: string): RpcFault {
  return new RpcFault('owner_unreachable', message, { headers: { 'retry-after': '1' } })
}
