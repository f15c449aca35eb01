import { type JsonObject, toJsonText } from '@toolgate/values/json'
import { HttpEndpoint, type Session } from '../servers/transport/http-endpoint.ts'
import { UpstreamError } from '../model/upstream.ts'
import { GatewayCall } from './gateway-call.ts'
import { type ClientRequest, isAnswerTo, readMessage } from './messages.ts'
import type { Reports } from './reports.ts'

export interface OwnAnswer {
  readonly message: JsonObject
  /** The id of the session that the request began. */
  readonly sessionId: string | undefined
}

const POST_MS = 5_000

/** The gateway's endpoint for one caller. */
export class GatewayLink {
  readonly endpoint: HttpEndpoint
  readonly #reports: Pick<Reports, 'reached' | 'unreached'>
  #isClosing = false
  #ownIds = 0

  constructor(url: URL, key: string | undefined, reports: Pick<Reports, 'reached' | 'unreached'>) {
    this.endpoint = new HttpEndpoint(url, key === undefined ? {} : { authorization: `Bearer ${key}` })
    this.#reports = reports
  }

  /** Sends a notification, or the answer to a request of a server. */
  async forward(line: string, { headers }: Session): Promise<void> {
    await this.#post({ method: 'POST', headers, body: line }, POST_MS)
  }

  /** Ends a session, if there is one. */
  async end({ id, headers }: Session, timeoutMs: number): Promise<void> {
    if (id !== undefined) await this.#post({ method: 'DELETE', headers }, timeoutMs)
  }

  /** Sends a request of this program itself. Returns `undefined` without an answer. @throws {UpstreamError} */
  async ask(request: Omit<ClientRequest, 'id' | 'text'>, session: Session): Promise<OwnAnswer | undefined> {
    const { method, params } = request
    const id = `toolgate-${++this.#ownIds}`
    const text = toJsonText({ jsonrpc: '2.0', id, method, params })
    let message: JsonObject | undefined
    const forward = (one: JsonObject) => (message = isAnswerTo(one, id) ? one : message)
    const answer = await new GatewayCall({ id, method, params, text }, session, {
      endpoint: this.endpoint,
      forward,
    }).send()
    if (answer) message = readMessage(answer.text)
    return message && isAnswerTo(message, id) ? { message, sessionId: answer?.sessionId } : undefined
  }

  /** Stops the reporting of problems, as the client is disconnecting. */
  closing(): void {
    this.#isClosing = true
  }

  close(): Promise<void> {
    return this.endpoint.close()
  }

  async #post(request: Parameters<HttpEndpoint['exchange']>[0], timeoutMs: number): Promise<void> {
    const sent = this.endpoint.exchange(request)
    const timer = setTimeout(sent.abort, timeoutMs)
    try {
      const { status } = await sent.answer
      this.#reports.reached(status)
    } catch (error) {
      if (!this.#isClosing) this.#reports.unreached(UpstreamError.from(error))
    } finally {
      clearTimeout(timer)
    }
  }
}
