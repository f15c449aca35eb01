import type { IncomingHttpHeaders } from 'node:http'
import type { Caller, Gate, Progress, Tool, View } from '@toolgate/core'
import type { WireNames } from '@toolgate/core/expose'
import type { Cancelling, JsonObject } from '@toolgate/core/internal'
import {
  callTool,
  checkListParams,
  type JsonRpcError,
  readCall,
  type RequestId,
  toAnswer,
  type ToolLists,
} from '@toolgate/mcp'
import { isLargeResult, nextTurn } from '../next-turn.ts'
import type { ClientLink } from '../relay/client-link.ts'
import { type FindTracing, type ServedRequest, serveTraced, type TracedMethod } from '../telemetry/tracing.ts'
import { checkParamHeaders } from './param-headers.ts'
import { RpcFault } from './protocol.ts'

/** A request of a client, in the terms of no era. */
export interface McpRequest {
  readonly id: RequestId
  readonly params: JsonObject
  /** In the session that the client names, if any. */
  readonly caller: Caller
  /** One that the gateway speaks. */
  readonly protocolVersion: string | undefined
  /** The headers that must repeat arguments; `undefined` before 2026-07-28. */
  readonly headers: IncomingHttpHeaders | undefined
  /** Aborts when the client cancels the request or is gone for good. */
  readonly signal: Cancelling
  /** The client, as servers reach it. */
  readonly link: ClientLink
  /** Sends a notification before the answer. It may be lost. */
  notify(method: string, params: JsonObject): void
}

/** The answer to a request, in the terms of no era. */
export type McpReply = McpResultReply | { readonly error: JsonRpcError }

export interface McpResultReply {
  readonly result: JsonObject
  /** How long the client may cache the result, in ms. Absent for results that are not cached. */
  readonly ttlMs?: number | undefined
  /** The same reply answers equal requests, so its bytes are kept with it. */
  readonly isKept?: boolean
  /** The called tool, if the caller sees it. */
  readonly tool?: Tool | undefined
}

/** Serves one method. @throws {RpcFault} */
export type McpMethod = (request: McpRequest) => Promise<McpReply>

/** What the gateway declares that it can do for clients, in every era. */
export interface ServerCapabilities {
  readonly tools: { readonly listChanged: true }
  readonly logging?: JsonObject
}

export interface MethodDeps {
  readonly capabilities: ServerCapabilities
  readonly gate: Pick<Gate, 'view'>
  readonly lists: Pick<ToolLists, 'listed' | 'names'>
  /** How long a client may cache a list, in milliseconds. */
  readonly listTtlMs: number
  /** Returns the tracing of requests, if it is on. */
  readonly tracing?: FindTracing | undefined
}

/** The methods that clients of every era call. Each era's own code wraps them in its envelope. */
export class McpMethods {
  readonly #deps: MethodDeps
  readonly #toolLists = new WeakMap<View, McpReply>()
  readonly #rows: ReadonlyMap<string, McpMethod>

  /** `own` are the methods that only one era has. */
  constructor(deps: MethodDeps, own: Iterable<readonly [TracedMethod, McpMethod]> = []) {
    this.#deps = deps
    this.#rows = new Map<string, McpMethod>([
      ['tools/list', (request) => this.#listTools(request)],
      ['tools/call', (request) => this.#callTool(request)],
      ...own,
    ])
  }

  /** Returns the answer to a request; `undefined` for an unknown method. @throws {RpcFault} */
  answer(method: string, request: McpRequest): Promise<McpReply> | undefined {
    const serve = this.#rows.get(method)
    if (!serve) return undefined
    // The table has only methods whose names may be traced.
    const toServed = () => this.#toServed(method as TracedMethod, request)
    return serveTraced(this.#deps.tracing, toServed, () => serve(request))
  }

  #toServed(method: TracedMethod, { id, params, protocolVersion }: McpRequest): ServedRequest {
    const { _meta: meta, name } = params
    return { method, tool: knownName(this.#deps.lists.names(), name), id, protocolVersion, meta }
  }

  async #listTools({ params, caller }: McpRequest): Promise<McpReply> {
    const { gate, lists, listTtlMs } = this.#deps
    const problem = checkListParams(params)
    if (problem !== undefined) throw new RpcFault('params_invalid', problem)
    const view = await gate.view(caller)
    let reply = this.#toolLists.get(view)
    if (!reply) {
      reply = { result: { tools: lists.listed(view) }, ttlMs: listTtlMs, isKept: true }
      this.#toolLists.set(view, reply)
    }
    return reply
  }

  async #callTool(request: McpRequest): Promise<McpReply> {
    const { gate, lists } = this.#deps
    const { name, input, progressToken } = parseCall(request.params)
    const view = await gate.view(request.caller)
    const names = lists.names()
    const tool = view.get(names.toId(name) ?? '')
    if (tool && request.headers) checkParamHeaders(tool, input, request.headers)
    const { signal, link } = request
    const onProgress =
      progressToken === undefined
        ? undefined
        : (progress: Progress) => request.notify('notifications/progress', { ...progress, progressToken })
    const answer = toAnswer(await callTool({ view, names, name, input, signal, onProgress, context: link }))
    if ('error' in answer) return answer
    if (isLargeResult(answer.result)) await nextTurn()
    return { result: answer.result, tool }
  }
}

/** Returns the name that a client calls, if a tool has it. Otherwise clients could create spans and series of any name. */
function knownName(names: WireNames, name: unknown): string | undefined {
  return typeof name === 'string' && names.toId(name) !== undefined ? name : undefined
}

interface ParsedCall {
  readonly name: string
  readonly input: unknown
  readonly progressToken: RequestId | undefined
}

/** @throws {RpcFault} `params_invalid`, `body_not_message` */
function parseCall(params: JsonObject): ParsedCall {
  const { name, input, progressToken, problem } = readCall(params)
  if (problem !== undefined) throw new RpcFault('params_invalid', problem)
  if (progressToken !== undefined && typeof progressToken !== 'string' && typeof progressToken !== 'number')
    throw new RpcFault('body_not_message', 'params._meta.progressToken must be a string or a number.')
  return { name, input, progressToken }
}
