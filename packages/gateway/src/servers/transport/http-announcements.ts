import { setTimeout as sleep } from 'node:timers/promises'
import {
  ACKNOWLEDGE_MS,
  createSubscription,
  keepListening,
  LISTEN,
  type Listening,
  type StreamEnd,
  type SubscriptionFilter,
} from './announcements.ts'
import { type CallHost, modernHeaders } from './http-call.ts'
import type { Session } from './http-endpoint.ts'
import { EVENT_STREAM, type HttpAnswer, isSuccess } from './http-answer.ts'
import { answerError } from './http-errors.ts'
import type { HttpRequest } from './http-exchange.ts'
import { parseMessages } from './json-rpc.ts'
import { encodeRequest } from './protocol.ts'
import { UpstreamError } from '../../model/upstream.ts'

/** The parts of a connection that its stream of announcements uses. */
export interface AnnouncementsHost extends Pick<CallHost, 'endpoint' | 'onMessage'> {
  nextId(): number
  /** Called after a stream was reopened: changes in between were not announced. */
  onGap(): void
  /** Checks whether a server that broke a stream still answers. Returns whether the connection continues. */
  check(reason: UpstreamError): Promise<boolean>
  /** Begins the session again if the server no longer knows it. Never rejects. */
  checkSession(session: Session): Promise<void>
}

/** The stream on which a server announces changes. It is kept open for one session at a time. */
export class HttpAnnouncements {
  readonly #host: AnnouncementsHost
  #listening: Listening | undefined

  constructor(host: AnnouncementsHost) {
    this.#host = host
  }

  /** Opens the stream of a session. Resolves when the server announces changes, or after a moment. */
  async listen(session: Session, filter: SubscriptionFilter, isDeclared: boolean): Promise<void> {
    this.stop()
    const listening = keepListening({
      open: (stopped, onOpen) =>
        session.era === 'modern'
          ? this.#subscribe(session, { filter, isDeclared }, stopped, onOpen)
          : this.#openStream(session, stopped, onOpen),
      onGap: () => this.#host.onGap(),
    })
    this.#listening = listening
    if (session.era === 'modern')
      await Promise.race([listening.begun, sleep(ACKNOWLEDGE_MS, undefined, { ref: false })])
  }

  stop(): void {
    this.#listening?.stop()
  }

  async #openStream(session: Session, stopped: AbortSignal, onOpen: () => void): Promise<StreamEnd> {
    onOpen()
    const onEvent = (data: string) => this.#forward(data, session)
    const answer = await this.#follow({ method: 'GET', headers: session.headers }, onEvent, stopped)
    if (stopped.aborted) return { again: false }
    if (answer instanceof UpstreamError) return { again: await this.#host.check(answer) }
    const { status, contentType, retryMs } = answer
    if (isSuccess(status) && contentType === EVENT_STREAM) return { again: true, retryMs }
    // These statuses mean a lost session, or only that the server has no such stream.
    if (session.id !== undefined && status >= 400 && status !== 405) await this.#host.checkSession(session)
    return { again: false, retryMs }
  }

  async #subscribe(
    session: Session,
    { filter, isDeclared }: { readonly filter: SubscriptionFilter; readonly isDeclared: boolean },
    stopped: AbortSignal,
    onOpen: () => void,
  ): Promise<StreamEnd> {
    const id = this.#host.nextId()
    const subscription = createSubscription(filter, isDeclared, onOpen)
    const params = { notifications: filter }
    let ended: StreamEnd | undefined
    const read = (text: string) => {
      for (const message of parseMessages(text)) {
        if (message.kind === 'notification') subscription.onNotification(message.method, message.params)
        if (message.kind === 'error') ended = subscription.end(message.error.code)
      }
    }
    const onEvent = (data: string) => {
      read(data)
      this.#forward(data, session)
    }
    const { headers } = session
    const ownHeaders = modernHeaders(LISTEN, params)
    const body = encodeRequest('modern', id, LISTEN, params, { progress: false })
    const answer = await this.#follow({ method: 'POST', headers, ownHeaders, body }, onEvent, stopped)
    if (stopped.aborted) return { again: false }
    if (answer instanceof UpstreamError) return { again: await this.#host.check(answer) }
    if (isSuccess(answer.status) && answer.contentType === 'application/json') read(answer.text)
    if (ended || answer.contentType === EVENT_STREAM)
      return { ...(ended ?? subscription.end()), retryMs: answer.retryMs }
    const code = answerError(answer, { id, inSession: false }).rpc?.code
    return code === undefined ? { again: answer.status === 429 || answer.status >= 500 } : subscription.end(code)
  }

  #forward(text: string, session: Session): void {
    for (const message of parseMessages(text))
      if (message.kind === 'notification' || message.kind === 'request') this.#host.onMessage(message, session)
  }

  async #follow(
    request: Omit<HttpRequest, 'path'>,
    onEvent: (data: string) => void,
    stopped: AbortSignal,
  ): Promise<HttpAnswer | UpstreamError> {
    const prepared = await this.#host.endpoint.credential?.prepare()?.catch(UpstreamError.from)
    if (prepared) return prepared
    const stream = this.#host.endpoint.exchange(request, onEvent)
    if (stopped.aborted) stream.abort()
    stopped.addEventListener('abort', stream.abort, { once: true })
    return stream.answer.catch(UpstreamError.from).finally(() => stopped.removeEventListener('abort', stream.abort))
  }
}
