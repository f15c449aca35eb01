import type { ToolAnnotations } from '@toolgate/core'
import { isObject, type JsonObject } from '@toolgate/values/json'
import { LeaseEndedError } from '@toolgate/core/call'
import { matchesGlob, parseGlob } from '@toolgate/core/toolset'
import { type McpResult, META, withoutNulls } from '@toolgate/mcp'
import { markNullsLeftOut } from '@toolgate/values'
import type { ServerConfig } from '../../config/config.ts'
import { isLargeResult, nextTurn } from '../../util/next-turn.ts'
import type { FindTracing, McpOperation, SentRequest } from '../../telemetry/tracing.ts'
import type { Connection, Era } from './connection.ts'
import { type ParamHeader, toParamHeaders } from './param-headers.ts'
import { completeResult } from './protocol.ts'
import { type CallMethod, type RequestClient, type UpstreamCall, UpstreamError } from '../../model/upstream.ts'

/** Progress extends the timeout of a call up to this many times its length. */
const MAX_TIMEOUT_FACTOR = 10

/** The server and settings of one call. */
interface CallTarget {
  readonly connection: Connection
  /** The arguments that a tool expects in HTTP headers. */
  readonly headers: readonly ParamHeader[] | undefined
  /** Called when the list of header arguments is outdated. */
  readonly onHeaderMismatch: () => void
}

const HEADER_MISMATCH = -32_020

/** Sends the calls of one server, and traces them if an SDK is registered. */
export class ServerCaller {
  readonly #config: ServerConfig
  readonly #tracing: FindTracing | undefined
  readonly #checkStart: (() => void) | undefined
  readonly #address: Pick<SentRequest, 'transport' | 'host' | 'port'>

  constructor(
    config: ServerConfig,
    {
      tracing,
      checkStart,
    }: { readonly tracing?: FindTracing | undefined; readonly checkStart?: (() => void) | undefined },
  ) {
    this.#config = config
    this.#tracing = tracing
    this.#checkStart = checkStart
    this.#address = addressOf(config)
  }

  /** @throws {UpstreamError} that names the server */
  call(target: CallTarget, asked: UpstreamCall): Promise<McpResult> {
    const operation = this.#tracing?.()?.startSent({
      method: asked.method,
      tool: toolOf(asked),
      server: this.#config.name,
      ...this.#address,
      protocolVersion: target.connection.protocolVersion,
    })
    if (!operation) return this.#request(target, asked)
    return followCall(operation, () => this.#request(target, asked, operation))
  }

  async #request(
    { connection, headers, onHeaderMismatch }: CallTarget,
    asked: UpstreamCall,
    trace?: McpOperation,
  ): Promise<McpResult> {
    const { name, callTimeoutMs, may } = this.#config
    const { method, params, signal, onProgress, answers } = asked
    const checkStart = STARTING.has(method) ? this.#checkStart : undefined
    try {
      checkStart?.()
      const result = await connection.request(method, answers ? { ...params, ...answers } : params, {
        timeoutMs: callTimeoutMs,
        maxTimeoutMs: callTimeoutMs * MAX_TIMEOUT_FACTOR,
        signal,
        onProgress,
        checkStart,
        mayRepeat: () => READING.has(method) || isIdempotent(this.#config, toolOf(asked)),
        paramHeaders: headers && toParamHeaders(headers, params['arguments']),
        trace,
        meta: connection.era === 'modern' ? metaOf(asked) : undefined,
        // A server of MCP 2026-07-28 can only log to its client.
        client: connection.era === 'modern' && !may?.log ? undefined : clientOf(asked),
      })
      if (isLargeResult(result)) await nextTurn()
      if (connection.era === 'modern' && result['resultType'] === 'input_required')
        return checkInputRequired(method, withoutNulls(result))
      if (connection.era === 'modern' && result['resultType'] === 'task' && method === 'tools/call') return result
      return checkResult(method, mendResult(method, connection.era, completeResult(connection.era, result)))
    } catch (error) {
      if (error instanceof UpstreamError && error.rpc?.code === HEADER_MISMATCH) onHeaderMismatch()
      throw toCallError(name, error)
    }
  }
}

/** Returns a server's address for traces, without a port that is chosen at each start. */
function addressOf({ url }: ServerConfig): Pick<SentRequest, 'transport' | 'host' | 'port'> {
  if (url === undefined) return { transport: 'pipe', host: undefined, port: undefined }
  const fixed = url.replace(':${port}', '')
  const { hostname, port, protocol } = URL.canParse(fixed) ? new URL(fixed) : NOWHERE
  const implied = fixed === url ? (protocol === 'https:' ? 443 : 80) : undefined
  return { transport: 'tcp', host: hostname || undefined, port: port === '' ? implied : Number(port) }
}

const NOWHERE = { hostname: '', port: '', protocol: '' }

async function followCall(operation: McpOperation, call: () => Promise<McpResult>): Promise<McpResult> {
  try {
    const result = await operation.within(call)
    if (result.isError === true) operation.fail('tool_error')
    return result
  } catch (error) {
    const { code, rpc } = UpstreamError.from(error)
    operation.fail(rpc ? String(rpc.code) : code, rpc?.code)
    throw error
  } finally {
    operation.end()
  }
}

/** Checks the fields of each result that other code relies on. */
const RESULTS: Readonly<Record<CallMethod, (result: JsonObject) => boolean>> = {
  'tools/call': ({ content, isError }) =>
    (content === undefined || Array.isArray(content)) && (isError === undefined || typeof isError === 'boolean'),
  'resources/read': ({ contents }) => Array.isArray(contents) && contents.every(isContents),
  'prompts/get': ({ messages }) => Array.isArray(messages) && messages.every(isObject),
  'completion/complete': ({ completion }) =>
    isObject(completion) &&
    Array.isArray(completion['values']) &&
    completion['values'].every((value) => typeof value === 'string'),
  'tasks/get': ({ taskId, status }) => isText(taskId) && isText(status),
  'tasks/result': ({ content, isError }) =>
    (content === undefined || Array.isArray(content)) && (isError === undefined || typeof isError === 'boolean'),
  'tasks/update': () => true,
  'tasks/cancel': () => true,
}

function isContents(item: unknown): boolean {
  return isObject(item) && typeof item['uri'] === 'string' && (isText(item['text']) || isText(item['blob']))
}

function isText(value: unknown): boolean {
  return typeof value === 'string'
}

/** The results in which no `null` has a meaning, except as structured content. The `ttl` of a task may be `null`. */
const MENDED: ReadonlySet<CallMethod> = new Set([
  'tools/call',
  'tasks/result',
  'resources/read',
  'prompts/get',
  'completion/complete',
])

/** Returns a result without members that are `null`. Since MCP 2026-07-28, `null` is a valid structured content. */
function mendResult(method: CallMethod, era: Era, result: JsonObject): JsonObject {
  if (!MENDED.has(method)) return result
  const mended = withoutNulls(result)
  const isContent = era === 'modern' && result['structuredContent'] === null
  return isContent ? markNullsLeftOut({ ...mended, structuredContent: null }) : mended
}

/** Checks the shape of a result. Its content is not changed. */
function checkResult(method: CallMethod, result: JsonObject): McpResult {
  if (RESULTS[method](result)) return result
  throw new UpstreamError('upstream_protocol', `answered something that is no result of ${method}`)
}

/**
 * The methods that start work, and so need a valid lease. Work that has begun may be read and cancelled without one.
 */
const STARTING: ReadonlySet<CallMethod> = new Set([
  'tools/call',
  'resources/read',
  'prompts/get',
  'completion/complete',
])

/** The methods that only read, and so may run twice. */
const READING: ReadonlySet<CallMethod> = new Set(['resources/read', 'prompts/get', 'completion/complete', 'tasks/get'])

/** Whether the operator says that a second run of a tool has no further effect. The server's own word does not count. */
function isIdempotent({ tools }: ServerConfig, tool: string | undefined): boolean {
  if (tool === undefined) return false
  const given = [...tools].flatMap(([pattern, { annotations = {} }]) =>
    matchesGlob(parseGlob(pattern), tool) ? [annotations] : [],
  )
  const { readOnlyHint, idempotentHint }: ToolAnnotations = Object.assign({}, ...given)
  return readOnlyHint === true || idempotentHint === true
}

/** The methods that a server of MCP 2026-07-28 may answer with `input_required`. */
const ASKING: ReadonlySet<CallMethod> = new Set(['tools/call', 'resources/read', 'prompts/get'])

function checkInputRequired(method: CallMethod, result: JsonObject): McpResult {
  const { inputRequests, requestState } = result
  const areRequests =
    inputRequests === undefined || (isObject(inputRequests) && Object.values(inputRequests).every(isInputRequest))
  const fits = areRequests && (requestState === undefined || isText(requestState))
  if (ASKING.has(method) && fits && (inputRequests ?? requestState) !== undefined) return result
  throw new UpstreamError('upstream_protocol', `answered ${method} with an input_required that is invalid`)
}

function isInputRequest(request: unknown): boolean {
  return isObject(request) && isText(request['method']) && isObject(request['params'] ?? {})
}

/**
 * Returns the fields about the client for a request of MCP 2026-07-28; `undefined` for a client without capabilities.
 */
function metaOf({ capabilities, logLevel }: UpstreamCall): JsonObject | undefined {
  if (capabilities === undefined && logLevel === undefined) return undefined
  return {
    ...(capabilities !== undefined && { [META.clientCapabilities]: capabilities }),
    ...(logLevel !== undefined && { [META.logLevel]: logLevel }),
  }
}

function clientOf({ caller, onAsk, onLog }: UpstreamCall): RequestClient | undefined {
  return onAsk || onLog ? { caller, ask: onAsk, log: onLog } : undefined
}

/** Returns the name of the called tool. */
function toolOf({ method, params: { name } }: UpstreamCall): string | undefined {
  return method === 'tools/call' && typeof name === 'string' ? name : undefined
}

/**
 * Returns the error for the caller. It names the server, without the reason why it is down, which may quote its stderr.
 */
function toCallError(server: string, error: unknown): Error {
  const cause = error instanceof UpstreamError ? error.cause : error
  if (cause instanceof LeaseEndedError) return cause
  const { code, message, rpc } = UpstreamError.from(error)
  const text = code === 'upstream_down' ? 'is not running' : message
  return new UpstreamError(code, `server "${server}" ${text}`, { ...(rpc ? { rpc } : {}), cause: error })
}
