import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import type { Caller, Gate, View } from '@toolgate/core'
import type { WireNames } from '@toolgate/core/expose'
import { createCanceller, isObject, type JsonObject } from '@toolgate/core/internal'
import {
  callTool,
  checkListParams,
  type ListWatch,
  type McpAnswer,
  type McpResult,
  META,
  MODERN_VERSIONS,
  readCall,
  type RequestId,
  toAnswer,
  type ToolCall,
  type ToolLists,
} from '@toolgate/mcp'
import { isLargeResult, nextTurn } from '../next-turn.ts'
import { findParamHeaders, toParamHeaders } from '../upstream/param-headers.ts'
import {
  type FindTracing,
  type McpOperation,
  recordAnswer,
  type ServedRequest,
  serveTraced,
  type TracedMethod,
} from '../telemetry/tracing.ts'
import type { ChangeStreams } from './change-streams.ts'
import { decodeHeader, type Message } from './envelope.ts'
import { RpcFault, sendJson, toEvent } from './protocol.ts'

export interface ModernDeps {
  readonly gate: Pick<Gate, 'view'>
  readonly lists: Pick<ToolLists, 'listed' | 'names'>
  readonly serverInfo: { readonly name: string; readonly version: string }
  /** Instructions for the model, which clients get when they connect. */
  readonly instructions?: string | undefined
  readonly watch: Pick<ListWatch, 'watch'>
  readonly streams: Pick<ChangeStreams, 'listen'>
  /** How long a client may cache a list, in milliseconds. */
  readonly listTtlMs: number
  /** Returns the tracing of requests, if it is on. */
  readonly tracing?: FindTracing | undefined
}

export type ModernRequest = Extract<Message, { era: 'modern'; kind: 'request' }>

/** Serves MCP 2026-07-28 without an SDK: `server/discover`, `tools/list`, `tools/call` and `subscriptions/listen`. */
export class ModernPath {
  readonly #deps: ModernDeps
  readonly #shared: object
  readonly #discovered: string
  readonly #lists = new WeakMap<View, Buffer>()

  constructor(deps: ModernDeps) {
    const { serverInfo, instructions, listTtlMs } = deps
    this.#deps = deps
    this.#shared = {
      resultType: 'complete',
      ttlMs: listTtlMs,
      cacheScope: 'private',
      _meta: { [META.serverInfo]: serverInfo },
    }
    const capabilities = { tools: { listChanged: true } }
    const discovered = { supportedVersions: MODERN_VERSIONS, capabilities, instructions, ...this.#shared }
    this.#discovered = JSON.stringify(discovered)
  }

  /** @throws {RpcFault} `method_unknown`, `params_invalid`, `header_mismatch` */
  async handle(
    message: ModernRequest,
    headers: IncomingHttpHeaders,
    caller: Caller,
    response: ServerResponse,
  ): Promise<void> {
    const { id, method, params } = message
    switch (method) {
      case 'tools/call':
        return this.#follow(method, message, (operation) =>
          this.#call(parseCall(params), id, headers, caller, response, operation),
        )
      case 'tools/list':
        return this.#follow(method, message, () => this.#list(params, id, caller, response))
      case 'server/discover':
        return this.#follow(method, message, async () => sendResult(response, id, this.#discovered))
      case 'subscriptions/listen':
        return this.#deps.streams.listen(this.#deps.watch, params, id, caller, response)
      default:
        throw new RpcFault('method_unknown', `Method not found: ${method.slice(0, 100)}`)
    }
  }

  #follow(
    method: TracedMethod,
    message: ModernRequest,
    serve: (operation: McpOperation | undefined) => Promise<void>,
  ): Promise<void> {
    return serveTraced(this.#deps.tracing, () => this.#toServed(method, message), serve)
  }

  #toServed(method: TracedMethod, { id, params }: ModernRequest): ServedRequest {
    const { _meta: meta, name } = params
    const version = isObject(meta) ? meta[META.protocolVersion] : undefined
    const protocolVersion = typeof version === 'string' ? version : undefined
    return { method, tool: knownName(this.#deps.lists.names(), name), id, protocolVersion, meta }
  }

  async #list(params: JsonObject, id: RequestId, caller: Caller, response: ServerResponse): Promise<void> {
    const problem = checkListParams(params)
    if (problem !== undefined) throw new RpcFault('params_invalid', problem)
    const view = await this.#deps.gate.view(caller)
    let bytes = this.#lists.get(view)
    if (!bytes) {
      bytes = Buffer.from(JSON.stringify({ tools: this.#deps.lists.listed(view), ...this.#shared }))
      this.#lists.set(view, bytes)
    }
    sendResult(response, id, bytes)
  }

  async #call(
    { name, input, progressToken }: ParsedCall,
    id: RequestId,
    headers: IncomingHttpHeaders,
    caller: Caller,
    response: ServerResponse,
    operation: McpOperation | undefined,
  ): Promise<void> {
    const view = await this.#deps.gate.view(caller)
    const names = this.#deps.lists.names()
    checkParamHeaders(view, names, name, input, headers)
    const gone = createCanceller()
    response.once('close', () => {
      if (!response.writableFinished) gone.abort(new Error('the client went away'))
    })
    const onProgress =
      progressToken === undefined ? undefined : (progress: object) => sendProgress(response, progress, progressToken)
    const answer = await answerCall({ view, names, name, input, signal: gone, onProgress })
    recordAnswer(operation, answer)
    const body = 'error' in answer ? { error: answer.error } : { result: this.#toOwnResult(answer.result) }
    const text = JSON.stringify({ jsonrpc: '2.0', id, ...body })
    if (response.headersSent) response.end(toEvent(text))
    else sendJson(response, text)
  }

  /** Returns the result unchanged, except that `_meta` names this server and not the one behind it. */
  #toOwnResult({ _meta: meta, ...result }: McpResult): McpResult {
    return { ...result, _meta: { ...meta, [META.serverInfo]: this.#deps.serverInfo }, resultType: 'complete' }
  }
}

/** Calls a tool and returns the answer for the client. */
export async function answerCall(call: ToolCall): Promise<McpAnswer> {
  const answer = toAnswer(await callTool(call))
  if ('result' in answer && isLargeResult(answer.result)) await nextTurn()
  return answer
}

/** Returns the name that a client calls, if a tool has it. Otherwise clients could create spans and series of any name. */
export function knownName(names: WireNames, name: unknown): string | undefined {
  return typeof name === 'string' && names.toId(name) !== undefined ? name : undefined
}

interface ParsedCall {
  readonly name: string
  readonly input: unknown
  readonly progressToken: RequestId | undefined
}

/** @throws {RpcFault} `params_invalid`, `body_not_message` */
export function parseCall(params: JsonObject): ParsedCall {
  const { name, input, progressToken, problem } = readCall(params)
  if (problem !== undefined) throw new RpcFault('params_invalid', problem)
  if (progressToken !== undefined && typeof progressToken !== 'string' && typeof progressToken !== 'number')
    throw new RpcFault('body_not_message', 'params._meta.progressToken must be a string or a number.')
  return { name, input, progressToken }
}

/** Checks that arguments agree with the headers that repeat them. Tools hidden from the caller are not checked. */
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
    const [header = '', value = ''] = expected.slice(i, i + 2)
    // Node's header names are in lower case.
    const sent = headers[header.toLowerCase()]
    const decoded = typeof sent === 'string' ? decodeHeader(sent.trim()) : undefined
    if (decoded === undefined || decoded !== decodeHeader(value)) {
      const message = `The headers and the body disagree: ${header} is ${sent === undefined ? '(missing)' : String(sent)}.`
      throw new RpcFault('header_mismatch', message, {
        data: { mismatch: { header, body: 'an argument of the call' } },
      })
    }
  }
}

const declaredHeaders = new WeakMap<object, ReturnType<typeof findParamHeaders>>()

function paramHeadersOf(schema: JsonObject): ReturnType<typeof findParamHeaders> {
  let declared = declaredHeaders.get(schema)
  if (declared === undefined) declaredHeaders.set(schema, (declared = findParamHeaders(schema)))
  return declared
}

const MAX_UNREAD_BYTES = 1024 * 1024

/** Sends progress. Only the first progress turns the response into an event stream, since most calls send none. */
function sendProgress(response: ServerResponse, progress: object, progressToken: RequestId): void {
  // Progress may be lost. It must not use up memory for a client that does not read.
  if (response.destroyed || response.writableEnded || response.writableLength > MAX_UNREAD_BYTES) return
  if (!response.headersSent) {
    response.writeHead(200, {
      'content-type': 'text/event-stream',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
    })
  }
  const params = { ...progress, progressToken }
  response.write(toEvent(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/progress', params })))
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
