import { randomUUID } from 'node:crypto'
import type { Caller } from '@toolgate/core'
import { type Cancelling, messageOf } from '@toolgate/values'
import type { JsonObject } from '@toolgate/values/json'
import { type JsonRpcError, type RequestId, RPC_CODES, RpcError } from '@toolgate/mcp'
import type { Session } from '../calls/sessions.ts'

/** How the questions of one request reach its client. */
interface QuestionChannel {
  /** Sends a message. Returns the function that removes it; `undefined` if the client is gone. */
  send(message: object): (() => void) | undefined
  notify(message: object): void
}

interface ClientQuestion {
  readonly session: Session
  readonly caller: Caller
  resolve(result: JsonObject): void
  reject(error: RpcError): void
}

/** An answer that a client posts. */
interface PostedAnswer {
  readonly id?: RequestId
  readonly result?: JsonObject
  readonly error?: JsonRpcError
}

const MAX_OF_SESSION = 16
const MAX_QUESTIONS = 1024

/**
 * The requests of servers that wait for their clients' answers (before 2026-07-28).
 *
 * Each has a new id that cannot be guessed. An answer counts once, and only from the caller and session that was asked.
 * Any other answer has no effect.
 */
export class ClientQuestions {
  readonly #open = new Map<RequestId, ClientQuestion>()

  get count(): number {
    return this.#open.size
  }

  /** Asks the client of a request. @throws {RpcError} from the client, or if the client cannot be asked */
  ask(
    channel: QuestionChannel,
    { session, caller }: Pick<ClientQuestion, 'session' | 'caller'>,
    { method, params, signal }: { readonly method: string; readonly params: JsonObject; readonly signal: Cancelling },
  ): Promise<JsonObject> {
    if (this.#open.size >= MAX_QUESTIONS || this.#of(session).length >= MAX_OF_SESSION)
      return Promise.reject(new RpcError(RPC_CODES.internalError, 'Too many questions wait for this client.'))
    const { promise, resolve, reject } = Promise.withResolvers<JsonObject>()
    if (signal.aborted) return Promise.reject(toCancelled(signal))
    const id = randomUUID()
    const forget = channel.send({ jsonrpc: '2.0', id, method, params })
    if (!forget) return Promise.reject(new RpcError(RPC_CODES.internalError, 'The client is gone.'))
    const stopListening = signal.onAbort(() => {
      if (!this.#open.has(id)) return
      channel.notify({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id } })
      reject(toCancelled(signal))
    })
    this.#open.set(id, { session, caller, resolve, reject })
    const endOfSession = () => reject(new RpcError(RPC_CODES.internalError, 'The session has ended.'))
    session.uses.add(endOfSession)
    return promise.finally(() => {
      this.#open.delete(id)
      session.uses.delete(endOfSession)
      stopListening()
      forget()
    })
  }

  /** Accepts an answer. The result does not reveal whether there was a question. */
  answer(session: Session | undefined, caller: Caller, { id, result, error }: PostedAnswer): void {
    const question = id === undefined ? undefined : this.#open.get(id)
    if (!question || question.session !== session || question.caller !== caller) return
    if (error) question.reject(new RpcError(error.code, error.message, error.data))
    else question.resolve(result ?? {})
  }

  #of(session: Session): readonly ClientQuestion[] {
    return [...this.#open.values()].filter((question) => question.session === session)
  }
}

function toCancelled({ reason }: Cancelling): RpcError {
  return new RpcError(RPC_CODES.internalError, `The question was withdrawn: ${messageOf(reason)}`)
}
