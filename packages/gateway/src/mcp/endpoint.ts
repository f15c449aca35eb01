import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Caller, Gate } from '@toolgate/core'
import { checkOrigin, type OriginRules } from '../auth/origin.ts'
import type { FailedLogins } from '../auth/failed-logins.ts'
import { type Keyring, toChallenge, toKeyId } from '../auth/keyring.ts'
import { isLarge, nextTurn } from '../next-turn.ts'
import { ClientGone, MAX_BODY_BYTES, parseBody, readBody } from './body.ts'
import { recordRefusedCall } from './call.ts'
import type { ChangeStreams } from './change-streams.ts'
import { type Params, readMessage } from './envelope.ts'
import { createLegacyHandler, type LegacyDeps } from './legacy.ts'
import { createModernHandler, type ModernDeps, readCall, sendJson } from './modern.ts'
import { checkLoop } from './via.ts'
import { echoableId, MODERN_VERSIONS, RPC_ERRORS, RpcFault, toFaultBody } from './protocol.ts'
import { inSession, readSession } from './session.ts'
import type { Sessions } from './sessions.ts'

export interface EndpointDeps extends ModernDeps, LegacyDeps {
  readonly gate: Pick<Gate, 'catalog' | 'locks' | 'view'>
  readonly keyring: Keyring
  readonly origins: OriginRules
  /** What this gateway calls itself to the servers behind it. Absent where there are none. */
  readonly via?: string
  /** Counts and slows wrong keys. Absent where nobody does. */
  readonly logins?: Pick<FailedLogins, 'failed'>
  readonly maxBodyBytes?: number
  readonly streams: Pick<ChangeStreams, 'listen' | 'open'>
  readonly sessions: Sessions
  /** The gateway waits for what runs, and takes nothing new. */
  readonly isStopping: () => boolean
  /** What the session had opened is locked again. */
  readonly onSessionEnded: () => void
}

/** Serves `/mcp`. Every answer is JSON-RPC, also to what never became a request. Never rejects. */
export type McpEndpoint = (request: IncomingMessage, response: ServerResponse) => Promise<void>

/** Gives the MCP endpoint: who asks, then what the message is, then the path of its era. */
export function createMcpEndpoint(deps: EndpointDeps): McpEndpoint {
  const modern = createModernHandler(deps)
  const legacy = createLegacyHandler(deps)

  const serve = async (
    request: IncomingMessage,
    response: ServerResponse,
    caller: Caller,
    body: unknown,
  ): Promise<void> => {
    const message = readMessage(body, request.headers)
    // Notifications are taken: one may cancel a call that the gateway waits for.
    if (typeof body === 'object' && body !== null && 'id' in body) checkStopping()
    if (message.era === 'legacy') {
      const { method, params } = body as { method?: string; params?: Params }
      // The session that initialize names, if any, is replaced by a new one.
      if (method !== 'initialize') checkSession(request, caller)
      if (method === 'tools/call') readCall(params ?? {})
      return legacy(request, response, body, caller)
    }
    if (message.kind === 'request') return modern.handle(message, request.headers, caller, response)
    response.writeHead(202).end()
  }

  /** @throws {RpcFault} `stopping` */
  const checkStopping = (): void => {
    if (!deps.isStopping()) return
    const headers = { 'retry-after': '1', connection: 'close' }
    throw new RpcFault('stopping', 'The gateway is stopping. Try again in a moment.', { headers })
  }

  /** @throws {RpcFault} `session_unknown` */
  const checkSession = ({ headers }: IncomingMessage, caller: Caller): void => {
    const id = readSession(headers)
    // A client that gets 404 begins a new session.
    if (id !== undefined && !deps.sessions.has(caller, id)) throw new RpcFault('session_unknown', 'Session not found.')
  }

  /** A client of an earlier revision listens on its session, or ends it. */
  const serveSession = async (request: IncomingMessage, response: ServerResponse, caller: Caller): Promise<void> => {
    checkSession(request, caller)
    const id = readSession(request.headers) as string
    const known = inSession(caller, id)
    if (request.method === 'GET') {
      checkStopping()
      response.once(
        'close',
        deps.sessions.hold(caller, id, () => response.end()),
      )
      return deps.streams.open(known, caller, response)
    }
    deps.sessions.end(caller, id)
    deps.gate.locks.forget(known)
    deps.onSessionEnded()
    response.writeHead(200).end()
  }

  return async (request, response) => {
    let body: unknown
    let caller: Caller | undefined
    try {
      caller = admitCaller(request, deps)
      checkLoop(request.headers, deps.via)
      if (isSessionRequest(request)) return await serveSession(request, response, caller)
      checkRequest(request)
      const text = await readBody(request, deps.maxBodyBytes ?? MAX_BODY_BYTES)
      if (isLarge(text)) await nextTurn()
      body = parseBody(text)
      if (isLarge(text)) await nextTurn()
      await serve(request, response, caller, body)
    } catch (error) {
      if (caller && error instanceof RpcFault) await recordIfCall(deps, caller, body, error)
      if (!caller) await slowWrongKey(request, error, deps)
      answerFault(response, error, body, deps.onFault)
    }
  }
}

/** Gives the endpoint of an app that there is not. Only who may come in is told: names of apps are not to be guessed. */
export function createNowhere(deps: Pick<EndpointDeps, 'keyring' | 'logins' | 'origins' | 'onFault'>): McpEndpoint {
  return async (request, response) => {
    try {
      admitCaller(request, deps)
      throw new RpcFault('app_unknown', 'Nothing is served here.')
    } catch (error) {
      await slowWrongKey(request, error, deps)
      answerFault(response, error, undefined, deps.onFault)
    }
  }
}

async function slowWrongKey(
  { headers, socket }: IncomingMessage,
  error: unknown,
  { logins }: Pick<EndpointDeps, 'logins'>,
): Promise<void> {
  const keyId = toKeyId(headers.authorization)
  const isWrong = error instanceof RpcFault && error.rule === 'key_refused' && keyId !== undefined
  if (isWrong) await logins?.failed(socket.remoteAddress, keyId)
}

/** Never rejects: a record that cannot be written changes no answer. */
async function recordIfCall(
  { gate, naming, onFault }: EndpointDeps,
  caller: Caller,
  body: unknown,
  fault: RpcFault,
): Promise<void> {
  if (typeof body !== 'object' || body === null) return
  const { method, params } = body as { method?: unknown; params?: { name?: unknown } | null }
  if (method !== 'tools/call') return
  try {
    await recordRefusedCall(await gate.view(caller), naming(gate.catalog.snapshot()), params?.name, fault.message)
  } catch (error) {
    onFault(error)
  }
}

function admitCaller(
  { headers }: IncomingMessage,
  { keyring, origins }: Pick<EndpointDeps, 'keyring' | 'origins'>,
): Caller {
  const foreign = checkOrigin(headers, origins)
  if (foreign) throw new RpcFault('origin_refused', foreign.message)
  const authentication = keyring.authenticate(headers.authorization)
  if (!authentication.ok) {
    throw new RpcFault('key_refused', KEY_PROBLEMS[authentication.reason], {
      headers: { 'www-authenticate': toChallenge(authentication.reason) },
    })
  }
  if (authentication.for !== 'mcp')
    throw new RpcFault('key_not_for_mcp', 'This key is for the console. Agents need a key of their own.')
  return authentication.caller
}

const KEY_PROBLEMS = {
  missing: 'A key is needed: Authorization: Bearer <key>.',
  malformed: 'The Authorization header holds no usable key.',
  unknown: 'The key is not known.',
} as const

function isSessionRequest({ method, headers }: IncomingMessage): boolean {
  if (readSession(headers) === undefined || MODERN_VERSIONS.includes(String(headers['mcp-protocol-version'])))
    return false
  return method === 'DELETE' || (method === 'GET' && (headers.accept ?? '').includes('text/event-stream'))
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
  if (response.destroyed) return
  if (response.headersSent) {
    response.destroy()
    return
  }
  const fault = known ? error : new RpcFault('internal', 'The gateway failed to answer.')
  sendJson(response, toFaultBody(fault, echoableId(body)), RPC_ERRORS[fault.rule].status, fault.headers)
}
