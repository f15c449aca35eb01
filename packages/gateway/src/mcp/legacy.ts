import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Caller, Gate } from '@toolgate/core'
import type { WireNames } from '@toolgate/core/expose'
import type { McpResult } from '@toolgate/core/internal'
import type { Toolset } from '@toolgate/core/toolset'
import { callTool } from './call.ts'
import { createCancellations } from './cancellations.ts'
import { toListedTools } from './listing.ts'
import { knownName } from './modern.ts'
import type { Offers } from './offer.ts'
import { META, type RequestId } from './protocol.ts'
import { inSession, readSession, SESSION_HEADER } from './session.ts'
import type { Sessions } from './sessions.ts'
import type { FindTracing, FollowedMethod, ServedRequest } from '../telemetry/tracing.ts'
import { noteAnswer, serveFollowed } from '../telemetry/served.ts'
import { LEGACY_VERSIONS } from '../upstream/protocol.ts'

export interface LegacyDeps {
  readonly gate: Pick<Gate, 'catalog' | 'view'>
  readonly naming: (snapshot: Toolset) => WireNames
  readonly offers: Pick<Offers, 'of'>
  readonly sessions: Pick<Sessions, 'begin'>
  readonly serverInfo: { readonly name: string; readonly version: string }
  /** What clients are told at their beginning, for the model. */
  readonly instructions?: string | undefined
  readonly onFault: (error: unknown) => void
  /** Follows requests, where somebody listens. */
  readonly tracing?: FindTracing | undefined
}

export type LegacyHandler = (
  request: IncomingMessage,
  response: ServerResponse,
  body: unknown,
  caller: Caller,
) => Promise<void>

/**
 * Gives the handler for clients of MCP 2025-03-26 to 2025-11-25, on the SDK's server, which is made anew for each request.
 *
 * The SDK is loaded at the first such client: a gateway that never meets one does without its memory.
 */
export function createLegacyHandler(deps: LegacyDeps): LegacyHandler {
  let loading: ReturnType<typeof load> | undefined
  return async (request, response, body, caller) => {
    const handle = await (loading ??= load(deps))
    return handle(request, response, body, caller)
  }
}

async function load({
  gate,
  naming,
  offers,
  sessions,
  serverInfo,
  instructions,
  onFault,
  tracing,
}: LegacyDeps): Promise<LegacyHandler> {
  const [{ legacyStatelessFallback, ProtocolError, Server }, { toNodeHandler }] = await Promise.all([
    import('@modelcontextprotocol/server'),
    import('@modelcontextprotocol/node'),
  ])

  const followCancellation = createCancelling(sessions)
  const createServer = (
    caller: Caller,
    body: LegacyMessage,
    cancelled: AbortSignal | undefined,
    { headers }: IncomingMessage,
    response: ServerResponse,
  ) => {
    const toServed = (method: FollowedMethod): ServedRequest => {
      const tool = knownName(naming(gate.catalog.snapshot()), body.params?.['name'])
      const version = LEGACY_VERSIONS.find((known) => known === headers['mcp-protocol-version'])
      return { method, tool, id: body.id, protocolVersion: version, meta: body.params?.['_meta'] }
    }
    const server = new Server(serverInfo, {
      capabilities: { tools: { listChanged: true } },
      ...(instructions === undefined ? {} : { instructions }),
    })
    const list = async () => {
      const view = await gate.view(caller)
      return { tools: toListedTools(offers.of(view), naming(gate.catalog.snapshot())) as never }
    }
    server.setRequestHandler('tools/list', () => serveFollowed(tracing, () => toServed('tools/list'), list))
    server.setRequestHandler('tools/call', ({ params }, { mcpReq }) =>
      serveFollowed(
        tracing,
        () => toServed('tools/call'),
        async (operation) => {
          const view = await gate.view(caller)
          const progressToken = params._meta?.progressToken
          const names = naming(gate.catalog.snapshot())
          const answer = await callTool({
            view,
            names,
            name: params.name,
            // As the endpoint checked it: the SDK's copy lacks what it drops.
            input: body.params?.['arguments'],
            signal: cancelled ? AbortSignal.any([mcpReq.signal, cancelled]) : mcpReq.signal,
            onProgress:
              progressToken === undefined
                ? undefined
                : (progress) => {
                    // Progress may be lost; memory for a client that does not read may not.
                    if (response.writableNeedDrain) return
                    mcpReq
                      .notify({ method: 'notifications/progress', params: { ...progress, progressToken } })
                      .catch(onFault)
                  },
          })
          noteAnswer(operation, answer)
          if ('error' in answer) throw new ProtocolError(answer.error.code, answer.error.message, answer.error.data)
          // In the list the SDK writes output schemas as earlier revisions have them: the result must fit those.
          const { outputSchema } = view.get(names.toId(params.name) ?? '') ?? {}
          return server.projectCallToolResult(withoutModernFields(answer.result) as never, outputSchema) as never
        },
      ),
    )
    return server
  }

  return (request, response, body, caller) => {
    const message = body as LegacyMessage
    const cancelled = followCancellation(message, request, response, caller)
    const known = inSession(caller, readSession(request.headers))
    const serve = legacyStatelessFallback(() => createServer(known, message, cancelled, request, response), onFault)
    const fetch = async (...asked: Parameters<typeof serve>) => withoutConnection(await serve(...asked))
    return toNodeHandler({ fetch }, { onerror: onFault })(request as never, response, body)
  }
}

/** Whether a connection stays open is between Node and the client: the SDK keeps it open against the client's wish. */
function withoutConnection(response: Response): Response {
  response.headers.delete('connection')
  return response
}

/** What the endpoint has checked of a message. */
interface LegacyMessage {
  readonly id?: RequestId
  readonly method?: string
  readonly params?: Readonly<Record<string, unknown>>
}

/**
 * Gives a function that gives the signal of a call's cancellation, and lets a message cancel an earlier call.
 *
 * The session tells apart the calls of two clients with one key.
 */
function createCancelling(sessions: LegacyDeps['sessions']) {
  const cancellations = createCancellations()
  return (
    { id, method, params }: LegacyMessage,
    { headers }: IncomingMessage,
    response: ServerResponse,
    caller: Caller,
  ): AbortSignal | undefined => {
    if (method === 'initialize') response.setHeader(SESSION_HEADER, sessions.begin(caller))
    const session = readSession(headers)
    if (session === undefined) return undefined
    if (method === 'notifications/cancelled') {
      const requestId = params?.['requestId']
      if (typeof requestId === 'string' || typeof requestId === 'number')
        cancellations.cancel(caller, session, requestId)
    }
    if (method !== 'tools/call' || id === undefined) return undefined
    const call = cancellations.open(caller, session, id)
    response.once('close', call.end)
    return call.signal
  }
}

/** `resultType` and the server's name in `_meta` are words of the modern revision, about the hop behind this one. */
function withoutModernFields({ resultType: _, _meta: meta, ...result }: McpResult): object {
  const { [META.serverInfo]: __, ...kept } = meta ?? {}
  return { content: [], ...result, ...(Object.keys(kept).length > 0 ? { _meta: kept } : {}) }
}
