import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Caller, Gate, Progress } from '@toolgate/core'
import { inSession, LEGACY_VERSIONS, type ToolLists, withoutHop } from '@toolgate/mcp'
import {
  type FindTracing,
  type McpOperation,
  recordAnswer,
  type ServedRequest,
  serveTraced,
  type TracedMethod,
} from '../telemetry/tracing.ts'
import type { RpcMessage } from './envelope.ts'
import { answerCall, knownName } from './modern.ts'
import { Cancellations, readSession, SESSION_HEADER, type Sessions } from './sessions.ts'

export interface LegacyDeps {
  readonly gate: Pick<Gate, 'view'>
  readonly lists: Pick<ToolLists, 'listed' | 'names'>
  readonly sessions: Pick<Sessions, 'begin'>
  readonly serverInfo: { readonly name: string; readonly version: string }
  /** Instructions for the model, which clients get when they connect. */
  readonly instructions?: string | undefined
  readonly onFault: (error: unknown) => void
  /** Returns the tracing of requests, if it is on. */
  readonly tracing?: FindTracing | undefined
}

export type LegacyHandler = (
  request: IncomingMessage,
  response: ServerResponse,
  message: RpcMessage,
  caller: Caller,
) => Promise<void>

/**
 * Returns the handler for clients of MCP 2025-03-26 to 2025-11-25. It makes an SDK server for each request.
 *
 * The SDK is loaded at the first such request, so a gateway without such clients does not pay for it.
 */
export function createLegacyHandler(deps: LegacyDeps): LegacyHandler {
  let loading: ReturnType<typeof loadHandler> | undefined
  return async (request, response, message, caller) => {
    const handle = await (loading ??= loadHandler(deps))
    return handle(request, response, message, caller)
  }
}

async function loadHandler(deps: LegacyDeps): Promise<LegacyHandler> {
  const [sdk, { toNodeHandler }] = await Promise.all([
    import('@modelcontextprotocol/server'),
    import('@modelcontextprotocol/node'),
  ])
  const cancellations = new Cancellations()
  return (request, response, message, caller) => {
    if (message.method === 'initialize') response.setHeader(SESSION_HEADER, deps.sessions.begin(caller))
    const cancelled = followCancellation(cancellations, message, request, response, caller)
    const session = inSession(caller, readSession(request.headers))
    const exchange: LegacyExchange = { deps, sdk, request, response, message, caller: session, cancelled }
    const serve = sdk.legacyStatelessFallback(() => createServer(exchange), deps.onFault)
    const fetch = async (...asked: Parameters<typeof serve>) => withoutConnection(await serve(...asked))
    return toNodeHandler({ fetch }, { onerror: deps.onFault })(request as never, response, message)
  }
}

/** A request of an earlier client, with its caller and its SDK. */
interface LegacyExchange {
  readonly deps: LegacyDeps
  readonly sdk: typeof import('@modelcontextprotocol/server')
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly message: RpcMessage
  /** In the session that the client names. */
  readonly caller: Caller
  readonly cancelled: AbortSignal | undefined
}

function createServer(exchange: LegacyExchange) {
  const { sdk, caller } = exchange
  const { gate, lists, serverInfo, instructions, tracing } = exchange.deps
  const server = new sdk.Server(serverInfo, {
    capabilities: { tools: { listChanged: true } },
    ...(instructions === undefined ? {} : { instructions }),
  })
  const follow = <T>(method: TracedMethod, serve: (operation: McpOperation | undefined) => Promise<T>) =>
    serveTraced(tracing, () => toServed(method, exchange), serve)
  server.setRequestHandler('tools/list', () =>
    follow('tools/list', async () => ({ tools: lists.listed(await gate.view(caller)) as never })),
  )
  server.setRequestHandler('tools/call', ({ params }, { mcpReq }) =>
    follow('tools/call', async (operation) => {
      const view = await gate.view(caller)
      const names = lists.names()
      const token = params._meta?.progressToken
      const answer = await answerCall({
        view,
        names,
        name: params.name,
        // From the message that the endpoint checked. The SDK's copy drops fields that its schema does not know.
        input: exchange.message.params?.['arguments'],
        signal: exchange.cancelled ? AbortSignal.any([mcpReq.signal, exchange.cancelled]) : mcpReq.signal,
        onProgress:
          token === undefined
            ? undefined
            : relayProgress(exchange, (progress) =>
                mcpReq.notify({ method: 'notifications/progress', params: { ...progress, progressToken: token } }),
              ),
      })
      recordAnswer(operation, answer)
      if ('error' in answer) throw new sdk.ProtocolError(answer.error.code, answer.error.message, answer.error.data)
      // The SDK rewrites output schemas in the list for earlier clients. The result must match those.
      const { outputSchema } = view.get(names.toId(params.name) ?? '') ?? {}
      return server.projectCallToolResult(withoutHop(answer.result) as never, outputSchema) as never
    }),
  )
  return server
}

function toServed(method: TracedMethod, { deps, request, message }: LegacyExchange): ServedRequest {
  const tool = knownName(deps.lists.names(), message.params?.['name'])
  const protocolVersion = LEGACY_VERSIONS.find((known) => known === request.headers['mcp-protocol-version'])
  return { method, tool, id: message.id, protocolVersion, meta: message.params?.['_meta'] }
}

function relayProgress(
  { deps, response }: LegacyExchange,
  notify: (progress: Progress) => Promise<void>,
): (progress: Progress) => void {
  return (progress) => {
    // Progress may be lost. It must not use up memory for a client that does not read.
    if (!response.writableNeedDrain) notify(progress).catch(deps.onFault)
  }
}

/** Removes the SDK's header, which would keep the connection open even if the client asked to close it. */
function withoutConnection(response: Response): Response {
  response.headers.delete('connection')
  return response
}

/**
 * Cancels the call that a message names. For a call in a session, returns the signal that a later message aborts.
 *
 * Two clients with one key may use the same ids, so calls are kept by session.
 */
function followCancellation(
  cancellations: Cancellations,
  { id, method, params }: RpcMessage,
  { headers }: IncomingMessage,
  response: ServerResponse,
  caller: Caller,
): AbortSignal | undefined {
  const session = readSession(headers)
  if (session === undefined) return undefined
  if (method === 'notifications/cancelled') {
    const requestId = params?.['requestId']
    if (typeof requestId === 'string' || typeof requestId === 'number') cancellations.cancel(caller, session, requestId)
  }
  if (method !== 'tools/call' || id === undefined) return undefined
  const call = cancellations.open(caller, session, id)
  response.once('close', call.end)
  return call.signal
}
