import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import type { Caller, View } from '@toolgate/core'
import type { Canceller, Cancelling } from '@toolgate/values'
import { isObject, type JsonObject, toJsonText } from '@toolgate/values/json'
import { LEGACY_VERSIONS, type ListedTool, type RequestId, RPC_CODES, withoutHop } from '@toolgate/mcp'
import { type ClientLink, clientLink } from '../servers/asks/client-link.ts'
import { type Authenticator, callerAt, type Credential } from '../auth/credential.ts'
import { type AnswerForm, checkAccept } from './accepts.ts'
import { AnswerStream, type KeepAlive, KeptBytes } from './answer-stream.ts'
import { parseClientCapabilities } from './client-capabilities.ts'
import { toEarlierResult, toEarlierTool } from './earlier-tools.ts'
import type { RpcMessage } from './envelope.ts'
import type { HeldStreams } from './held-streams.ts'
import { isLogged } from '../model/log-levels.ts'
import { type Capabilities, McpMethods, type MethodDeps } from './methods.ts'
import { RpcFault, sendEvent, sendJson } from '../model/protocol.ts'
import type { ClientQuestions } from './questions.ts'
import type { McpReply, McpRequest, McpResultReply } from '../calls/request.ts'
import type { SessionClient } from '../calls/kept-session.ts'
import { type Session, SESSION_HEADER, type Sessions } from '../calls/sessions.ts'

export interface LegacyDeps extends MethodDeps {
  readonly sessions: Pick<Sessions, 'begin' | 'keep'>
  readonly keepAlive: KeepAlive
  readonly held: HeldStreams
  readonly questions: ClientQuestions
  readonly capabilities: Capabilities
  readonly serverInfo: { readonly name: string; readonly version: string }
  /** Returns the instructions for the model, which clients get when they connect. */
  readonly instructions?: ((view: View) => string | undefined) | undefined
}

/** A message of an earlier client, and the context in which it arrived. */
interface LegacyMessage {
  readonly message: RpcMessage
  readonly headers: IncomingHttpHeaders
  readonly credential: Credential
  /** The session that the client names, if any. */
  readonly session: Session | undefined
}

/** Clients of the first revision are few. They are served like those of 2024-11-05. */
const VERSIONS: readonly string[] = [...LEGACY_VERSIONS, '2024-10-07']
const [LATEST = ''] = VERSIONS
/** Since this revision, a stream may begin with an event that has no message. */
const PRIMES_SINCE = '2025-11-25'

const METHOD_NOT_FOUND: McpReply = { error: { code: RPC_CODES.methodNotFound, message: 'Method not found' } }

/** Serves the revisions that begin with `initialize`: 2025-11-25 and before. */
export class LegacyPath {
  readonly #deps: LegacyDeps
  readonly #methods: McpMethods
  readonly #kept = new KeptBytes<McpResultReply>()

  constructor(deps: LegacyDeps) {
    this.#deps = deps
    this.#methods = new McpMethods(deps, 'legacy')
  }

  /** @throws {RpcFault} */
  async handle(sent: LegacyMessage, response: ServerResponse): Promise<void> {
    const { message, headers } = sent
    const { id, method } = message
    const isRequest = method !== undefined && id !== undefined
    // A message without an answer needs no form for it.
    const form = isRequest ? checkAccept(headers.accept) : 'any'
    const own = isRequest && method === 'initialize' ? await this.#initialize(sent, response) : undefined
    if (!own) checkVersion(headers)
    if (!isRequest) {
      if (method === undefined) this.#deps.questions.answer(sent.session, sent.credential.caller, message)
      else if (method === 'notifications/cancelled') cancel(sent)
      response.writeHead(202).end()
      return
    }
    const result = own ?? (method === 'ping' ? {} : undefined)
    if (result) return (form === 'stream' ? sendEvent : sendJson)(response, toJsonText({ jsonrpc: '2.0', id, result }))
    await this.#answer(method, new LegacyRequest(sent, id, { response, form }, this.#deps))
  }

  async #answer(method: string, request: LegacyRequest): Promise<void> {
    const { id, stream } = request
    try {
      const reply = await (this.#methods.answer(method, request) ?? METHOD_NOT_FOUND)
      if ('created' in reply) return stream.end(toJsonText({ jsonrpc: '2.0', id, result: reply.created }))
      if ('asks' in reply) throw new TypeError('a client of an earlier revision cannot be asked by an answer')
      if ('error' in reply) stream.end(toJsonText({ jsonrpc: '2.0', id, error: reply.error }))
      else if (reply.isKept)
        stream.endWith(
          id,
          this.#kept.of(reply, () => toEarlier(method, reply)),
        )
      else stream.end(toJsonText({ jsonrpc: '2.0', id, result: toEarlier(method, reply) }))
    } catch (error) {
      stream.drop()
      throw toEarlierFault(error)
    } finally {
      request.end()
    }
  }

  async #initialize(
    { message: { params = {} }, credential: { caller } }: LegacyMessage,
    response: ServerResponse,
  ): Promise<object> {
    const client = checkInitialize(params)
    const { gate, capabilities, sessions, serverInfo, instructions } = this.#deps
    const { protocolVersion } = client
    const text = instructions?.(await gate.view(caller))
    const session = sessions.begin(caller, client)
    await sessions.keep(session)
    response.setHeader(SESSION_HEADER, session.id)
    return {
      protocolVersion,
      capabilities: capabilities({ era: 'legacy', protocolVersion }),
      serverInfo,
      ...(text === undefined ? {} : { instructions: text }),
    }
  }
}

class LegacyRequest implements McpRequest {
  readonly id: RequestId
  readonly params: JsonObject
  readonly caller: Caller
  readonly headers = undefined
  readonly stream: AnswerStream
  readonly #sent: LegacyMessage
  readonly #questions: ClientQuestions
  readonly #credentials: Pick<Authenticator, 'renewed'>
  readonly #resource: string
  #link: ClientLink | undefined
  #running: { readonly canceller: Canceller; readonly end: () => void } | undefined

  constructor(
    sent: LegacyMessage,
    id: RequestId,
    { response, form }: { readonly response: ServerResponse; readonly form: AnswerForm },
    {
      keepAlive,
      held,
      questions,
      authenticator,
      resource = '/mcp',
    }: Pick<LegacyDeps, 'keepAlive' | 'held' | 'questions' | 'authenticator' | 'resource'>,
  ) {
    this.#resource = resource
    this.#credentials = authenticator
    const {
      session,
      credential: { caller },
      message,
    } = sent
    this.id = id
    this.params = message.params ?? {}
    this.caller = session?.callerOf(caller) ?? caller
    this.stream = new AnswerStream(response, {
      keepAlive,
      form,
      hold: session && ((owner) => held.open(session, caller, owner, id)),
      isPrimed: session !== undefined && session.protocolVersion >= PRIMES_SINCE,
    })
    this.#sent = sent
    this.#questions = questions
  }

  /** The credential's id. Only rounds and tasks are bound to it. */
  get client(): string {
    return this.#sent.credential.id
  }

  readonly callerNow = (): Caller | undefined => {
    const { session, credential } = this.#sent
    const now = callerAt(this.#credentials.renewed(credential), this.#resource)
    return now && (session?.callerOf(now) ?? now)
  }

  get session(): Session | undefined {
    return this.#sent.session
  }

  /** The caller of the credential, without a session. */
  get owner(): Caller {
    return this.#sent.credential.caller
  }

  /** A client may leave the header out in a session, where it has agreed on a revision. */
  get protocolVersion(): string | undefined {
    const { headers, session } = this.#sent
    const named = headers['mcp-protocol-version'] ?? session?.protocolVersion
    return VERSIONS.find((known) => known === named)
  }

  /** A message can cancel a request only within a session, since two clients with one key may use the same ids. */
  get signal(): Cancelling {
    const { session, owner: caller } = this
    if (!session) return this.stream.gone
    if (!this.#running) {
      const running = (this.#running = session.run(caller, this.id))
      const { gone } = this.stream
      gone.onAbort(() => running.canceller.abort(gone.reason))
    }
    return this.#running.canceller
  }

  get link(): ClientLink {
    return (this.#link ??= this.#toLink())
  }

  #toLink(): ClientLink {
    const { session, owner: caller } = this
    return clientLink({
      era: 'legacy',
      capabilities: session?.capabilities ?? {},
      // Without a session, answers of different clients could not be told apart.
      ask:
        session && this.stream.canStream
          ? (method, params, signal) =>
              this.#questions.ask(this.stream, { session, caller }, { method, params, signal })
          : undefined,
      logLevel: session?.logLevel ?? 'debug',
      log: (params) => this.#log(params),
    })
  }

  notify(method: string, params: JsonObject): void {
    this.stream.notify({ jsonrpc: '2.0', method, params })
  }

  end(): void {
    this.#running?.end()
  }

  #log(params: JsonObject): void {
    const least = this.#sent.session?.logLevel ?? 'debug'
    if (isLogged(params['level'], least)) this.notify('notifications/message', params)
  }
}

/** Returns the result of a reply in the form of earlier revisions, without the fields about the hop to the server. */
function toEarlier(method: string, { result, tool }: McpResultReply): object {
  if (method === 'tools/call' || method === 'tasks/result')
    return toEarlierResult(withoutHop(result), tool?.outputSchema)
  const { tools } = result
  return method === 'tools/list' ? { ...result, tools: (tools as readonly ListedTool[]).map(toEarlierTool) } : result
}

/** Converts `session_unknown`: before 2026-07-28, only HTTP 404 means that the session has ended. */
function toEarlierFault(error: unknown): unknown {
  if (!(error instanceof RpcFault) || error.status !== 404) return error
  return new RpcFault(error.rule, error.message, { data: error.data, headers: error.headers, status: 200 })
}

function cancel({ message: { params = {} }, session, credential }: LegacyMessage): void {
  const { requestId } = params
  if (typeof requestId === 'string' || typeof requestId === 'number' || typeof requestId === 'bigint')
    session?.cancel(credential.caller, requestId)
}

function checkVersion(headers: IncomingHttpHeaders): void {
  const version = headers['mcp-protocol-version']
  if (version === undefined || VERSIONS.includes(String(version))) return
  const message = `Unsupported protocol version: ${String(version).slice(0, 100)} (supported: ${VERSIONS.join(', ')})`
  throw new RpcFault('version_refused', message)
}

/** @throws {RpcFault} `params_invalid` */
function checkInitialize({ protocolVersion, capabilities, clientInfo }: JsonObject): SessionClient {
  const refuse = (problem: string) => new RpcFault('params_invalid', `params.${problem}.`)
  if (typeof protocolVersion !== 'string') throw refuse('protocolVersion must be a string')
  if (!isObject(clientInfo) || typeof clientInfo['name'] !== 'string' || typeof clientInfo['version'] !== 'string')
    throw refuse('clientInfo must have a name and a version')
  return {
    capabilities: parseClientCapabilities(capabilities),
    // A client that does not support the offered revision disconnects.
    protocolVersion: VERSIONS.find((known) => known === protocolVersion) ?? LATEST,
  }
}
