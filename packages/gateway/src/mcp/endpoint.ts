import { VIA_HEADER } from '../servers/via.ts'
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Caller, Gate, View } from '@toolgate/core'
import type { AvailabilitySource } from '@toolgate/core/groups'
import { isObject } from '@toolgate/values/json'
import type { MaybePromise } from '@toolgate/core/internal'
import { type ItemLists, ListWatch, MODERN_VERSIONS, ownerOf, recordRefusedCall, type ToolLists } from '@toolgate/mcp'
import { checkAgentOrigin, type OriginRules } from '../auth/origin.ts'
import type { FailedLogins } from '../auth/failed-logins.ts'
import {
  type Authenticator,
  type Credential,
  opensEndpoint,
  type Refusal,
  toKeyId,
  toResource,
} from '../auth/credential.ts'
import { isLarge, nextTurn } from '../util/next-turn.ts'
import type { Asked, Elsewhere } from '../replicas/elsewhere.ts'
import type { Method } from '../calls/method.ts'
import { ClientGone, MAX_BODY_BYTES, parseBody, readBody } from '../model/body.ts'
import { checkAccept, toAnswerForm } from './accepts.ts'
import type { ChangeStreams } from './change-streams.ts'
import { readMessage, type RpcMessage } from './envelope.ts'
import type { Instructions } from '../servers/catalog/instructions.ts'
import { type LegacyDeps, LegacyPath } from './legacy.ts'
import { type ModernDeps, ModernPath } from './modern.ts'
import { echoableId, RpcFault, sendEvent, sendJson, toEvent, toFaultBody } from '../model/protocol.ts'
import { readSession, type Session, type Sessions } from '../calls/sessions.ts'
import type { StoredSessions } from '../calls/stored-sessions.ts'
import { subscribeSession } from './resources/methods.ts'

export interface EndpointDeps extends Omit<ModernDeps, 'watch'>, LegacyDeps {
  readonly gate: Pick<Gate, 'apps' | 'catalog' | 'locks' | 'subscribe' | 'view'>
  readonly lists: ToolLists
  /** The lists of resources and prompts. Absent if no server has any. */
  readonly items?: ItemLists | undefined
  /** The instructions from the gateway and from the servers. */
  readonly texts: { readonly own: string | undefined; readonly servers: Pick<Instructions, 'of'> }
  readonly availability: Pick<AvailabilitySource, 'subscribe'>
  readonly onFault: (error: unknown) => void
  readonly authenticator: Authenticator
  readonly origins: OriginRules
  /** The id by which servers recognize requests from this gateway. Absent if there are no servers. */
  readonly via?: string
  /** Counts failed logins and delays their answers. */
  readonly logins?: Pick<FailedLogins, 'failed'>
  readonly maxBodyBytes?: number
  readonly streams: ChangeStreams
  readonly sessions: Sessions
  /** The sessions that an earlier process of this gateway has stored. Absent for replicas, and without a store. */
  readonly stored?: Pick<StoredSessions, 'find'> | undefined
  /** Forwards requests to other replicas. Absent if this gateway runs alone. */
  readonly elsewhere?: Pick<Elsewhere, 'check' | 'holds' | 'place' | 'reach'> | undefined
  /** `isStopping`: the gateway waits for running calls and accepts no new ones. */
  readonly stopping: { readonly isStopping: boolean }
  /** Whether users have lists of their own now, for which requests wait. Default: true. */
  readonly hasUserLists?: () => boolean
}

/** Serves `/mcp`. Every answer is JSON-RPC, even if the request is not. Never rejects. */
export type McpEndpoint = (request: IncomingMessage, response: ServerResponse) => Promise<void>

/** The MCP endpoints of a gateway: `/mcp`, and one for each app. */
export class McpEndpoints {
  /** Serves `/mcp`. */
  readonly serve: McpEndpoint
  readonly #deps: EndpointDeps
  readonly #whole: OpenEndpoint
  #apps: ReadonlyMap<string, OpenEndpoint> = new Map()

  constructor(deps: EndpointDeps) {
    this.#deps = deps
    this.#whole = this.#open(deps, deps.methods())
    this.serve = (request, response) => this.#whole.now.answer(request, response)
    this.renew()
  }

  /** Serves the current apps of the gate, and the current methods of the rooms. */
  renew(): void {
    const { gate } = this.#deps
    const before = this.#apps
    const methods = this.#deps.methods()
    this.#whole.now = this.#whole.create(methods)
    this.#apps = new Map(
      gate.apps.list.map(({ name, instructions }) => {
        const resource = toResource(name)
        const known = before.get(name) ?? this.#open({ ...this.#deps, gate: gateOfApp(gate, name), resource }, methods)
        known.now = known.create(methods, instructions)
        return [name, known]
      }),
    )
    for (const [name, { watch }] of before) if (!this.#apps.has(name)) watch.close()
  }

  /**
   * Returns the endpoint of `/mcp/<app>`. The endpoint of an unknown app reports the error only to callers with a key.
   */
  ofApp(app: string): McpEndpoint {
    const endpoint = this.#apps.get(app)
    return endpoint
      ? (request, response) => endpoint.now.answer(request, response)
      : (request, response) => serveNowhere({ ...this.#deps, resource: toResource(app) }, request, response)
  }

  /** Compares the clients' lists soon. Call it when a session has opened or lost a group, which the gate does not announce. */
  wake(): void {
    for (const { watch } of this.#all()) watch.wake()
  }

  /** Does the same after a caller's session has opened a group, and stores the session with it. */
  unlocked(caller: Caller): void {
    this.#deps.sessions.unlocked(caller)
    this.wake()
  }

  close(): void {
    for (const { watch } of this.#all()) watch.close()
  }

  #all(): readonly OpenEndpoint[] {
    return [this.#whole, ...this.#apps.values()]
  }

  #open(deps: EndpointDeps, methods: readonly Method[]): OpenEndpoint {
    const { gate, lists, availability, onFault, texts } = deps
    const openView = async (caller: Caller, isFirst: boolean) => {
      if (isFirst) await deps.prepare?.(caller, false)
      return gate.view(caller)
    }
    const watch = new ListWatch({ gate, openView, lists, items: deps.items, availability, onFault })
    const { authenticator, resource = '/mcp' } = deps
    const scopeChallenge = (scopes: readonly string[]) => authenticator.insufficientScope(scopes, resource)
    const create: OpenEndpoint['create'] = (current, ofApp) => {
      const instructions = (view: View) => texts.servers.of(view, [texts.own, ofApp])
      const prepare = deps.hasUserLists?.() === false ? undefined : deps.prepare
      const served = { ...deps, methods: () => current, prepare, instructions, scopeChallenge }
      return new Endpoint(served, watch, () => this.wake())
    }
    return { watch, create, now: create(methods) }
  }
}

/** An endpoint that is served. A change of the rules replaces `now`. */
interface OpenEndpoint {
  readonly watch: ListWatch
  now: Endpoint
  /** `ofApp`: the app's own instructions. */
  create(methods: readonly Method[], ofApp?: string): Endpoint
}

/** Returns a gate that opens only views of the app. */
function gateOfApp(gate: EndpointDeps['gate'], app: string): EndpointDeps['gate'] {
  const { apps, catalog, locks } = gate
  return {
    apps,
    catalog,
    locks,
    subscribe: (listener) => gate.subscribe(listener),
    view: (caller, options) => gate.view(caller, { ...options, app }),
  }
}

/** Authenticates the caller, reads the message, and passes it to the handler of its era. */
class Endpoint {
  readonly #deps: EndpointDeps
  readonly #watch: ListWatch
  readonly #onSessionEnded: () => void
  readonly #modern: ModernPath
  readonly #legacy: LegacyPath

  constructor(deps: EndpointDeps, watch: ListWatch, onSessionEnded: () => void) {
    this.#deps = deps
    this.#watch = watch
    this.#onSessionEnded = onSessionEnded
    this.#modern = new ModernPath({ ...deps, watch })
    this.#legacy = new LegacyPath(deps)
  }

  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const deps = this.#deps
    let body: unknown
    let credential: Credential | undefined
    try {
      const admitted = admit(request, deps)
      credential = admitted instanceof Promise ? await admitted : admitted
      checkLoop(request.headers, deps.via)
      const session = sessionOf(request)
      if (session !== undefined) return await this.#serveSession(session, request, response, credential)
      checkRequest(request)
      const text = await readBody(request, deps.maxBodyBytes ?? MAX_BODY_BYTES)
      if (isLarge(text)) await nextTurn()
      body = parseBody(text)
      if (isLarge(text)) await nextTurn()
      // Reading the body took time, so the caller is authenticated again.
      credential = checkAnswer(
        deps.authenticator.renewed(credential) ?? ENDED,
        deps.authenticator,
        deps.resource ?? '/mcp',
      )
      await this.#serve({ request, response, text }, credential, body)
    } catch (error) {
      if (credential && error instanceof RpcFault) await recordIfCall(deps, credential.caller, body, error)
      if (!credential) await slowWrongKey(request, error, deps)
      answerFault(response, error, body, deps.onFault)
    }
  }

  async #serve(sent: Omit<Asked, 'caller'>, credential: Credential, body: unknown): Promise<void> {
    const { request, response } = sent
    const message = readMessage(body, request.headers)
    const { method, params }: RpcMessage =
      message.era === 'legacy' ? message.message : message.kind === 'request' ? message : {}
    const { elsewhere, stopping } = this.#deps
    // A stopping gateway still accepts notifications, and answers to questions of running calls.
    if (stopping.isStopping && isObject(body) && 'id' in body && method !== undefined && !elsewhere?.holds(params))
      this.#refuseWhileStopping(request)
    const placed = elsewhere?.place({ ...sent, caller: credential.caller }, method, params)
    if (placed instanceof Promise ? await placed : placed) return undefined
    if (message.era === 'modern') {
      if (message.kind === 'request') return this.#modern.handle(message, request.headers, credential, response)
      response.writeHead(202).end()
      return
    }
    const { headers } = request
    // A new session replaces the session that `initialize` names, if any.
    const named = message.message.method === 'initialize' ? undefined : readSession(headers)
    const found = named === undefined ? undefined : this.#findSession(named, credential.caller, sent)
    const session = found instanceof Promise ? await found : found
    if (named !== undefined && session === undefined) return undefined
    session?.enter(response)
    return this.#legacy.handle({ message: message.message, headers, credential, session }, response)
  }

  /** Serves the GET that opens a session's stream and the DELETE that ends the session (earlier revisions). */
  async #serveSession(
    id: string,
    request: IncomingMessage,
    response: ServerResponse,
    credential: Credential,
  ): Promise<void> {
    const { gate, sessions, streams, held, authenticator } = this.#deps
    const { caller } = credential
    if (await this.#deps.elsewhere?.place({ request, response, caller })) return undefined
    const session = await this.#findSession(id, caller, { request, response })
    if (!session) return undefined
    const inThis = session.callerOf(caller)
    const lastEventId = request.headers['last-event-id']
    if (request.method === 'GET' && lastEventId !== undefined) {
      if (held.resume(session, caller, String(lastEventId), response)) return
      const lost = held.lostIn(String(lastEventId))
      if (lost !== undefined) return sendEvent(response, toFaultBody(CALL_LOST, lost))
      throw new RpcFault('event_unknown', 'Event not found.')
    }
    if (request.method === 'GET') {
      if (this.#deps.stopping.isStopping) this.#refuseWhileStopping(request)
      const release = sessions.hold(caller, id, () => response.end())
      response.once('close', release)
      const holds = () => authenticator.renewed(credential) !== undefined
      const { hasGap } = session
      session.hasGap = false
      return streams.open({ watch: this.#watch, holds, hasGap }, inThis, caller, response)
    }
    const ended = sessions.end(caller, id)
    gate.locks.forget(inThis)
    this.#onSessionEnded()
    await ended
    response.writeHead(200).end()
  }

  /**
   * @throws {RpcFault} `stopping`. A forwarding replica gets `session_elsewhere` instead, and asks again after the
   * session was handed over
   */
  #refuseWhileStopping(request: IncomingMessage): never {
    const { elsewhere } = this.#deps
    if (elsewhere?.check(request)) throw new RpcFault('session_elsewhere', 'This replica is stopping.')
    const headers = { 'retry-after': '1', connection: 'close' }
    throw new RpcFault('stopping', 'The gateway is stopping. Try again in a moment.', { headers })
  }

  /**
   * Returns a session; `undefined` if another replica has it and has answered the request. @throws {RpcFault}
   * `session_unknown`
   */
  #findSession(id: string, caller: Caller, sent: Omit<Asked, 'caller'>): MaybePromise<Session | undefined> {
    const session = this.#deps.sessions.find(caller, id)
    return session ?? this.#continue(id, caller, sent)
  }

  /** Continues a session that another process has begun and nobody has ended. @throws {RpcFault} `session_unknown` */
  async #continue(id: string, caller: Caller, sent: Omit<Asked, 'caller'>): Promise<Session | undefined> {
    const { sessions, elsewhere, stored, onFault } = this.#deps
    if (elsewhere) {
      const reached = await elsewhere.reach(id, { ...sent, caller })
      if (reached) this.#resume(reached, caller).catch(onFault)
      return reached
    }
    const kept = await stored?.find(id)
    // Many clients do not begin again after a 404, so only an ended or foreign session gets it.
    const session = kept?.owner === ownerOf(caller) ? sessions.restore(caller, id, kept) : undefined
    if (!session) throw new RpcFault('session_unknown', 'Session not found.')
    this.#resume(session, caller).catch(onFault)
    return session
  }

  /** Begins the subscriptions of a continued session again. Its servers may still be starting, so it tries several times. */
  async #resume(session: Session, caller: Caller): Promise<void> {
    const { resources, gate, streams } = this.#deps
    const subscriptions = session.unresumed.size > 0 ? resources?.subscriptionsOf(gate) : undefined
    if (!subscriptions) return
    for (const delayMs of RESUME_AFTER_MS) {
      await sleep(delayMs, undefined, { ref: false })
      for (const uri of session.unresumed)
        await subscribeSession({ session, uri, owner: caller, subscriptions, streams })
      if (session.unresumed.size === 0 || session.isEnded) return
    }
  }
}

/** The answer to a client that resumes the stream of a call that an earlier process ran. */
const CALL_LOST = new RpcFault(
  'owner_lost',
  'The process that ran this call is gone, and the call with it. It may have run.',
)

/** When the subscriptions of a continued session are tried, each after the one before. */
const RESUME_AFTER_MS = [0, 500, 2_000, 10_000, 30_000]

/**
 * Answers for an unknown app. Only callers with a key learn that it does not exist, so names of apps cannot be probed.
 */
async function serveNowhere(deps: EndpointDeps, request: IncomingMessage, response: ServerResponse): Promise<void> {
  try {
    await admit(request, deps)
    throw new RpcFault('app_unknown', 'Nothing is served here.')
  } catch (error) {
    await slowWrongKey(request, error, deps)
    answerFault(response, error, undefined, deps.onFault)
  }
}

async function slowWrongKey(
  request: IncomingMessage,
  error: unknown,
  { logins }: Pick<EndpointDeps, 'logins'>,
): Promise<void> {
  const keyId = toKeyId(request.headers.authorization)
  const isWrong = error instanceof RpcFault && error.rule === 'key_refused' && keyId !== undefined
  if (isWrong) await logins?.failed(request, keyId)
}

/** Records a refused call. Never rejects: a record that cannot be written does not change the answer. */
async function recordIfCall(
  { gate, lists, onFault }: EndpointDeps,
  caller: Caller,
  body: unknown,
  fault: RpcFault,
): Promise<void> {
  if (!isObject(body) || body['method'] !== 'tools/call') return
  const name = isObject(body['params']) ? body['params']['name'] : undefined
  try {
    const view = await gate.view(caller)
    await recordRefusedCall(view, lists.names(view), name, fault.message)
  } catch (error) {
    onFault(error)
  }
}

/** @throws {RpcFault} `forward_refused`, `origin_refused`, `key_refused`, `key_not_for_mcp` */
function admit(
  request: IncomingMessage,
  {
    authenticator,
    elsewhere,
    origins,
    resource = '/mcp',
  }: Pick<EndpointDeps, 'authenticator' | 'elsewhere' | 'origins' | 'resource'>,
): MaybePromise<Credential> {
  const { headers } = request
  // The replica that forwarded a request has already checked its origin.
  const foreign = elsewhere?.check(request) ? undefined : checkAgentOrigin(headers, origins)
  if (foreign) throw new RpcFault('origin_refused', foreign.message)
  const answer = authenticator.authenticate(headers, resource)
  return answer instanceof Promise
    ? answer.then((found) => checkAnswer(found, authenticator, resource))
    : checkAnswer(answer, authenticator, resource)
}

function checkAnswer(answer: Credential | Refusal, authenticator: Authenticator, resource: string): Credential {
  if ('refused' in answer) {
    if (answer.refused === 'unavailable')
      throw new RpcFault('issuer_unavailable', KEY_PROBLEMS.unavailable, { headers: { 'retry-after': '5' } })
    throw new RpcFault('key_refused', KEY_PROBLEMS[answer.refused], {
      headers: { 'www-authenticate': authenticator.challenge(answer.refused, resource) },
    })
  }
  if (answer.for !== 'mcp')
    throw new RpcFault('key_not_for_mcp', `This key is for ${USES[answer.for]}. Agents need a key of their own.`)
  // An app that the key does not open is answered like an app that does not exist, so names of apps cannot be probed.
  if (!opensEndpoint(answer, resource)) throw new RpcFault('app_unknown', 'Nothing is served here.')
  return answer
}

const ENDED: Refusal = Object.freeze({ refused: 'unknown' })

const USES = { console: 'the console', host: 'a program that runs agents' } as const

const KEY_PROBLEMS = {
  missing: 'A key is needed: Authorization: Bearer <key>.',
  malformed: 'The Authorization header holds no usable key.',
  unknown: 'The key is not known.',
  unavailable: 'The authorization server of this token cannot be reached.',
} as const

/** Returns the session if the request opens its stream or ends it. @throws {RpcFault} `not_acceptable` */
function sessionOf({ method, headers }: IncomingMessage): string | undefined {
  if (MODERN_VERSIONS.includes(String(headers['mcp-protocol-version']))) return undefined
  if (method !== 'GET' && method !== 'DELETE') return undefined
  const session = readSession(headers)
  if (method === 'GET' && session !== undefined && checkAccept(headers.accept) === 'json')
    throw new RpcFault('not_acceptable', 'The stream of a session is an event stream only.')
  return session
}

function checkRequest({ method, headers }: IncomingMessage): void {
  if (method !== 'POST')
    throw new RpcFault('method_not_post', `${method} is not served here; POST is.`, { headers: { allow: 'POST' } })
  const [type = ''] = (headers['content-type'] ?? '').split(';')
  if (type.trim().toLowerCase() !== 'application/json')
    throw new RpcFault('content_type', 'The Content-Type must be application/json.')
}

function answerFault(response: ServerResponse, error: unknown, body: unknown, onFault: (error: unknown) => void): void {
  if (error instanceof ClientGone) return
  const known = error instanceof RpcFault
  if (!known) onFault(error)
  if (response.destroyed || response.writableEnded) return
  const fault = known ? error : new RpcFault('internal', 'The gateway failed to answer.')
  const text = toFaultBody(fault, echoableId(body))
  const send = toAnswerForm(response.req.headers.accept) === 'stream' ? sendEvent : sendJson
  if (!response.headersSent) send(response, text, fault.status, fault.headers)
  else if (response.getHeader('content-type') === 'text/event-stream') response.end(toEvent(text))
  else response.destroy()
}

/**
 * Checks that a request does not come from this gateway itself. A gateway with itself as a server would list more tools
 * each time.
 *
 * @throws {RpcFault} `loop_refused`
 */
function checkLoop(headers: IncomingHttpHeaders, via: string | undefined): void {
  if (via !== undefined && headers[VIA_HEADER] === via)
    throw new RpcFault('loop_refused', 'This request comes from this gateway: it is configured as a server of itself.')
}
