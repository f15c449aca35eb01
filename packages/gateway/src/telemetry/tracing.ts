import type { JsonObject } from '@toolgate/values/json'
import type { JsonRpcError } from '@toolgate/mcp'
import { RPC_ERRORS, RpcFault } from '../model/protocol.ts'
import type { CallMethod } from '../model/upstream.ts'

/** The methods whose requests are traced. Other names come from clients and must not become span names. */
export type TracedMethod =
  | CallMethod
  | 'tools/list'
  | 'resources/list'
  | 'resources/templates/list'
  | 'prompts/list'
  | 'tasks/list'
  | 'resources/subscribe'
  | 'resources/unsubscribe'
  | 'server/discover'

/** The network transport: HTTP, or the pipes of stdio. */
export type Transport = 'tcp' | 'pipe'

export interface ServedRequest {
  readonly method: TracedMethod
  /** The name of the called tool, if the catalog has it. */
  readonly tool?: string | undefined
  readonly id: string | number | undefined
  /** A revision that the gateway supports. */
  readonly protocolVersion: string | undefined
  /** `params._meta`, unchecked. */
  readonly meta: unknown
}

export interface SentRequest {
  readonly method: TracedMethod
  readonly tool?: string | undefined
  /** The server's name in the configuration. */
  readonly server: string
  readonly transport: Transport
  /** The server's network address, if it has one. */
  readonly host: string | undefined
  readonly port: number | undefined
  readonly protocolVersion: string | undefined
}

/** The span and metrics of one MCP request. None of its methods throws by itself. */
export interface McpOperation {
  /** The fields to add to the request's `_meta`, if its span is recorded. */
  readonly meta: { readonly traceparent: string } | undefined
  /** Runs work so that its spans become children of the request's span. */
  within<T>(work: () => T): T
  /** Records the JSON-RPC id of the request. */
  sentAs(id: string | number): void
  /** Records an error type: `tool_error`, a JSON-RPC code, or one of our codes. Only the first one counts. */
  fail(type: string, rpcCode?: number): void
  end(): void
}

/** Traces MCP requests on both sides of the gateway. */
export interface McpTracing {
  startServed(request: ServedRequest): McpOperation | undefined
  startSent(request: SentRequest): McpOperation | undefined
}

/** Returns the current tracing, or `undefined` while no SDK is registered. */
export type FindTracing = () => McpTracing | undefined

/** The traced parts of an answer. */
type Answered =
  | { readonly result: JsonObject }
  | { readonly error: JsonRpcError }
  | { readonly asks: JsonObject }
  | { readonly created: JsonObject }

/** Runs a request within its operation, and ends the operation with the answer. */
export async function traced<T extends Answered>(operation: McpOperation, serve: () => Promise<T>): Promise<T> {
  try {
    const answer = await operation.within(serve)
    if ('error' in answer) operation.fail(String(answer.error.code), answer.error.code)
    // A refusal is a result with `isError`.
    else if ('result' in answer && answer.result['isError'] === true) operation.fail('tool_error')
    return answer
  } catch (error) {
    const { code } = RPC_ERRORS[error instanceof RpcFault ? error.rule : 'internal']
    operation.fail(String(code), code)
    throw error
  } finally {
    operation.end()
  }
}
