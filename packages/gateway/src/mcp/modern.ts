import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import type { Caller, Gate, View } from '@toolgate/core'
import type { WireNames } from '@toolgate/core/expose'
import { createCanceller, type McpResult } from '@toolgate/core/internal'
import type { Toolset } from '@toolgate/core/toolset'
import { findParamHeaders, toParamHeaders } from '../upstream/param-headers.ts'
import type { FindTracing, FollowedMethod, McpOperation, ServedRequest } from '../telemetry/tracing.ts'
import { noteAnswer, serveFollowed } from '../telemetry/served.ts'
import { callTool } from './call.ts'
import type { ChangeStreams } from './change-streams.ts'
import { decodeHeader, type Message, type Params } from './envelope.ts'
import { toListedTools } from './listing.ts'
import type { Offers } from './offer.ts'
import { META, MODERN_VERSIONS, type RequestId, RpcFault } from './protocol.ts'

export interface ModernDeps {
  readonly gate: Pick<Gate, 'catalog' | 'view'>
  readonly naming: (snapshot: Toolset) => WireNames
  readonly serverInfo: { readonly name: string; readonly version: string }
  /** What clients are told at their beginning, for the model. */
  readonly instructions?: string | undefined
  readonly offers: Pick<Offers, 'of'>
  readonly streams: Pick<ChangeStreams, 'listen'>
  /** How long a client may keep a list, in milliseconds. */
  readonly listTtlMs: number
  /** Follows requests, where somebody listens. */
  readonly tracing?: FindTracing | undefined
}

export type ModernRequest = Extract<Message, { era: 'modern'; kind: 'request' }>

export interface ModernHandler {
  /** @throws {RpcFault} `method_unknown`, `params_invalid`, `header_mismatch` */
  handle(message: ModernRequest, headers: IncomingHttpHeaders, caller: Caller, response: ServerResponse): Promise<void>
}

/** Gives the gateway's own path for MCP 2026-07-28: `server/discover`, `tools/list`, `tools/call` and `subscriptions/listen`. */
export function createModernHandler(deps: ModernDeps): ModernHandler {
  const { gate, naming, serverInfo, instructions } = deps
  const shared = {
    resultType: 'complete',
    ttlMs: deps.listTtlMs,
    cacheScope: 'private',
    _meta: { [META.serverInfo]: serverInfo },
  }
  const capabilities = { tools: { listChanged: true } }
  const discovered = JSON.stringify({ supportedVersions: MODERN_VERSIONS, capabilities, instructions, ...shared })
  const lists = new WeakMap<View, Buffer>()

  const listOf = (view: View): Buffer => {
    let bytes = lists.get(view)
    if (!bytes)
      lists.set(
        view,
        (bytes = Buffer.from(
          JSON.stringify({ tools: toListedTools(deps.offers.of(view), naming(gate.catalog.snapshot())), ...shared }),
        )),
      )
    return bytes
  }

  return {
    async handle(message, headers, caller, response) {
      const { id, method, params } = message
      const follow = (serve: (operation: McpOperation | undefined) => Promise<void>) =>
        serveFollowed(deps.tracing, () => toServed(method as FollowedMethod, message), serve)
      switch (method) {
        case 'tools/call':
          return follow((operation) => serveCall(readCall(params), id, headers, caller, response, operation))
        case 'tools/list':
          return follow(() => serveList(params, id, caller, response))
        case 'server/discover':
          return follow(async () => sendResult(response, id, discovered))
        case 'subscriptions/listen':
          return deps.streams.listen(params, id, caller, response)
        default:
          throw new RpcFault('method_unknown', `Method not found: ${method.slice(0, 100)}`)
      }
    },
  }

  function toServed(method: FollowedMethod, { id, params }: ModernRequest): ServedRequest {
    const meta = params['_meta'] as Params
    const protocolVersion = meta[META.protocolVersion] as string
    return { method, tool: knownName(naming(gate.catalog.snapshot()), params['name']), id, protocolVersion, meta }
  }

  async function serveList(params: Params, id: RequestId, caller: Caller, response: ServerResponse): Promise<void> {
    if (params['cursor'] !== undefined)
      throw new RpcFault('params_invalid', 'params.cursor is not a cursor of this server: its list has one page.')
    sendResult(response, id, listOf(await gate.view(caller)))
  }

  /** A result passes as it came, but for who answers: that is this server, and no server behind it. */
  function toOwnResult({ _meta: meta, ...result }: McpResult): McpResult {
    return { ...result, _meta: { ...meta, [META.serverInfo]: serverInfo }, resultType: 'complete' }
  }

  async function serveCall(
    { name, input, progressToken }: CallParams,
    id: RequestId,
    headers: IncomingHttpHeaders,
    caller: Caller,
    response: ServerResponse,
    operation: McpOperation | undefined,
  ): Promise<void> {
    const view = await gate.view(caller)
    const names = naming(gate.catalog.snapshot())
    checkParamHeaders(view, names, name, input, headers)
    const gone = createCanceller()
    response.once('close', () => {
      if (!response.writableFinished) gone.abort(new Error('the client went away'))
    })
    const stream = progressToken === undefined ? undefined : createProgressStream(response, progressToken)
    const answer = await callTool({ view, names, name, input, signal: gone, onProgress: stream?.send })
    noteAnswer(operation, answer)
    const body =
      'error' in answer
        ? { jsonrpc: '2.0', id, error: answer.error }
        : { jsonrpc: '2.0', id, result: toOwnResult(answer.result) }
    const text = JSON.stringify(body)
    if (stream?.begun()) response.end(toEvent(text))
    else sendJson(response, text)
  }
}

/** Gives a name that a client calls if the catalog has a tool of it: no other may name a span or a series. */
export function knownName(names: WireNames, name: unknown): string | undefined {
  return typeof name === 'string' && names.toId(name) !== undefined ? name : undefined
}

interface CallParams {
  readonly name: string
  readonly input: unknown
  readonly progressToken: RequestId | undefined
}

/** @throws {RpcFault} `params_invalid`, `body_not_message` */
export function readCall(params: Params): CallParams {
  const { name, arguments: input } = params
  if (typeof name !== 'string') throw new RpcFault('params_invalid', 'params.name must be a string.')
  if (input !== undefined && (typeof input !== 'object' || input === null || Array.isArray(input))) {
    throw new RpcFault('params_invalid', 'params.arguments must be an object.')
  }
  const token = (params['_meta'] as Params | undefined)?.['progressToken']
  if (token !== undefined && typeof token !== 'string' && typeof token !== 'number') {
    throw new RpcFault('body_not_message', 'params._meta.progressToken must be a string or a number.')
  }
  return { name, input, progressToken: token }
}

/** Arguments that a tool's schema repeats in headers must agree with them. Only for tools that the caller sees: others have no schema here. */
function checkParamHeaders(
  view: View,
  names: WireNames,
  name: string,
  input: unknown,
  headers: IncomingHttpHeaders,
): void {
  const tool = view.get(names.toId(name) ?? '')
  const declared = tool && paramHeadersOf(tool.inputSchema)
  if (!declared || typeof declared === 'string' || declared.length === 0) return
  const expected = toParamHeaders(declared, input)
  for (let i = 0; i < expected.length; i += 2) {
    const header = expected[i] as string
    // Node gives the names of headers in lower case.
    const said = headers[header.toLowerCase()]
    const decoded = typeof said === 'string' ? decodeHeader(said.trim()) : undefined
    if (decoded === undefined || decoded !== decodeHeader(expected[i + 1] as string)) {
      throw new RpcFault(
        'header_mismatch',
        `The headers and the body disagree: ${header} is ${said === undefined ? '(missing)' : String(said)}.`,
        {
          data: { mismatch: { header, body: 'an argument of the call' } },
        },
      )
    }
  }
}

const declaredHeaders = new WeakMap<object, ReturnType<typeof findParamHeaders>>()

function paramHeadersOf(schema: { readonly [keyword: string]: unknown }): ReturnType<typeof findParamHeaders> {
  let declared = declaredHeaders.get(schema)
  if (declared === undefined) declaredHeaders.set(schema, (declared = findParamHeaders(schema)))
  return declared
}

const MAX_UNREAD_BYTES = 1024 * 1024

/** Turns the answer into an event stream at the first progress, and not before: most calls have none. */
function createProgressStream(response: ServerResponse, progressToken: RequestId) {
  return {
    begun: () => response.headersSent,
    send: (progress: object): void => {
      // Progress may be lost; memory for a client that does not read may not.
      if (response.destroyed || response.writableEnded || response.writableLength > MAX_UNREAD_BYTES) return
      if (!response.headersSent) {
        response.writeHead(200, {
          'content-type': 'text/event-stream',
          'cache-control': 'no-store',
          'x-accel-buffering': 'no',
        })
      }
      response.write(
        toEvent(
          JSON.stringify({ jsonrpc: '2.0', method: 'notifications/progress', params: { ...progress, progressToken } }),
        ),
      )
    },
  }
}

function toEvent(text: string): string {
  return `event: message\ndata: ${text}\n\n`
}

function sendResult(response: ServerResponse, id: RequestId, result: string | Buffer): void {
  const head = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":`
  if (typeof result === 'string') return sendJson(response, `${head}${result}}`)
  response.writeHead(200, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(head) + result.length + 1,
  })
  response.cork()
  response.write(head)
  response.write(result)
  response.end('}')
}

export function sendJson(
  response: ServerResponse,
  text: string,
  status: number = 200,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    ...headers,
  })
  response.end(text)
}
