import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import type { Caller, View } from '@toolgate/core'
import type { Cancelling } from '@toolgate/values'
import { isObject, type JsonObject, toJsonText } from '@toolgate/values/json'
import { type JsonRpcError, type ListWatch, META, MODERN_VERSIONS, type RequestId } from '@toolgate/mcp'
import { type ClientCapabilities, type ClientLink, clientLink } from '../servers/asks/client-link.ts'
import { callerAt, type Credential } from '../auth/credential.ts'
import { checkAccept } from './accepts.ts'
import { AnswerStream, type KeepAlive, KeptBytes } from './answer-stream.ts'
import type { ChangeStreams } from './change-streams.ts'
import type { Message } from './envelope.ts'
import { isLogged, toLogLevel } from '../model/log-levels.ts'
import { type Capabilities, McpMethods, type MethodDeps } from './methods.ts'
import type { McpAskReply, McpReply, McpRequest, McpResultReply } from '../calls/request.ts'
import { RpcFault } from '../model/protocol.ts'
import type { Resources } from './resources/start.ts'

export interface ModernDeps extends MethodDeps {
  readonly serverInfo: { readonly name: string; readonly version: string }
  /** Returns the instructions for the model, which clients get when they connect. */
  readonly instructions?: ((view: View) => string | undefined) | undefined
  readonly watch: Pick<ListWatch, 'watch'>
  readonly capabilities: Capabilities
  /** Subscriptions to resources. Absent if no server offers resources. */
  readonly resources?: Resources | undefined
  readonly streams: Pick<ChangeStreams, 'listen' | 'notify'>
  readonly keepAlive: KeepAlive
}

type ModernMessage = Extract<Message, { era: 'modern'; kind: 'request' }>

/** Serves MCP 2026-07-28, in which each request and each answer is self-contained. */
export class ModernPath {
  readonly #deps: ModernDeps
  readonly #methods: McpMethods
  readonly #kept = new KeptBytes<McpResultReply>()
  readonly #discovered = new WeakMap<View, { readonly text: string | undefined; readonly reply: McpReply }>()

  constructor(deps: ModernDeps) {
    this.#deps = deps
    this.#methods = new McpMethods(deps, 'modern', [
      { name: 'server/discover', serve: ({ caller }) => this.#discover(caller) },
    ])
  }

  async #discover(caller: Caller): Promise<McpReply> {
    const { gate, capabilities, instructions, listTtlMs: ttlMs } = this.#deps
    const view = await gate.view(caller)
    const text = instructions?.(view)
    let discovered = this.#discovered.get(view)
    if (!discovered || discovered.text !== text) {
      const result = {
        supportedVersions: MODERN_VERSIONS,
        capabilities: capabilities({ era: 'modern' }),
        instructions: text,
      }
      this.#discovered.set(view, (discovered = { text, reply: { result, ttlMs, isKept: true } }))
    }
    return discovered.reply
  }

  /** @throws {RpcFault} `not_acceptable`, `method_unknown`, `params_invalid`, `header_mismatch` */
  async handle(
    message: ModernMessage,
    headers: IncomingHttpHeaders,
    credential: Credential,
    response: ServerResponse,
  ): Promise<void> {
    const { id, method, params } = message
    const form = checkAccept(headers.accept)
    if (method === 'subscriptions/listen') {
      if (form === 'json') throw new RpcFault('not_acceptable', `${method} answers with an event stream only.`)
      const { watch, gate, resources, authenticator, streams } = this.#deps
      const subscriptions = resources?.subscriptionsOf(gate)
      const holds = () => authenticator.renewed(credential) !== undefined
      return streams.listen({ watch, subscriptions, holds }, params, id, credential.caller, response)
    }
    const stream = new AnswerStream(response, { keepAlive: this.#deps.keepAlive, form })
    const answering = this.#methods.answer(method, new ModernRequest(message, headers, credential, stream, this.#deps))
    if (!answering) throw new RpcFault('method_unknown', `Method not found: ${method.slice(0, 100)}`)
    try {
      const reply = await answering
      if ('created' in reply) stream.end(toJsonText({ jsonrpc: '2.0', id, result: this.#toCreated(reply.created) }))
      else if ('error' in reply)
        stream.end(toJsonText({ jsonrpc: '2.0', id, error: reply.error }), statusOf(reply.error))
      else if ('asks' in reply) stream.end(toJsonText({ jsonrpc: '2.0', id, result: this.#toAskResult(reply) }))
      else if (reply.isKept)
        stream.endWith(
          id,
          this.#kept.of(reply, () => this.#toResult(reply)),
        )
      else stream.end(toJsonText({ jsonrpc: '2.0', id, result: this.#toResult(reply) }))
    } catch (error) {
      stream.drop()
      throw error
    }
  }

  #toAskResult({ asks, state }: McpAskReply): JsonObject {
    const meta = { [META.serverInfo]: this.#deps.serverInfo }
    return { resultType: 'input_required', inputRequests: asks, requestState: state, _meta: meta }
  }

  #toCreated(created: JsonObject): JsonObject {
    return { ...created, _meta: { [META.serverInfo]: this.#deps.serverInfo } }
  }

  /** Returns the result unchanged, except that `_meta` names this server instead of the one behind it. */
  #toResult({ result, ttlMs }: McpResultReply): JsonObject {
    const { _meta: meta, ...rest } = result
    return {
      ...rest,
      resultType: 'complete',
      ...(ttlMs === undefined ? {} : { ttlMs, cacheScope: 'private' }),
      _meta: { ...(isObject(meta) ? meta : {}), [META.serverInfo]: this.#deps.serverInfo },
    }
  }
}

class ModernRequest implements McpRequest {
  readonly id: RequestId
  readonly params: JsonObject
  readonly credential: Credential
  readonly caller: Caller
  readonly client: string
  readonly headers: IncomingHttpHeaders
  readonly stream: AnswerStream
  readonly link: ClientLink
  readonly #deps: Pick<ModernDeps, 'authenticator' | 'resource'>

  constructor(
    { id, params }: ModernMessage,
    headers: IncomingHttpHeaders,
    credential: Credential,
    stream: AnswerStream,
    deps: Pick<ModernDeps, 'authenticator' | 'resource'>,
  ) {
    this.#deps = deps
    this.id = id
    this.params = params
    this.headers = headers
    this.credential = credential
    this.caller = credential.caller
    this.client = credential.id
    this.stream = stream
    this.link = this.#toLink()
  }

  readonly callerNow = (): Caller | undefined => {
    const { authenticator, resource = '/mcp' } = this.#deps
    return callerAt(authenticator.renewed(this.credential), resource)
  }

  get owner(): Caller {
    return this.caller
  }

  get session(): undefined {
    return undefined
  }

  get protocolVersion(): string | undefined {
    return textIn(this.params, META.protocolVersion)
  }

  get signal(): Cancelling {
    return this.stream.gone
  }

  #toLink(): ClientLink {
    const meta = this.params['_meta']
    // The envelope was checked, so `capabilities` is an object.
    const capabilities = (isObject(meta) ? meta[META.clientCapabilities] : {}) as ClientCapabilities
    const level = textIn(this.params, META.logLevel)
    return clientLink({
      era: 'modern',
      capabilities,
      ask: undefined,
      logLevel: level === undefined ? undefined : toLogLevel(level),
      log: (params) => this.#log(params),
    })
  }

  notify(method: string, params: JsonObject): void {
    this.stream.notify({ jsonrpc: '2.0', method, params })
  }

  /** Sends log messages only to clients that name a level in the request. */
  #log(params: JsonObject): void {
    const least = toLogLevel(textIn(this.params, META.logLevel))
    if (least !== undefined && isLogged(params['level'], least)) this.notify('notifications/message', params)
  }
}

/** MCP 2026-07-28: a request that lacks a capability gets HTTP 400. */
function statusOf({ code }: JsonRpcError): number | undefined {
  return code === MISSING_CAPABILITY ? 400 : undefined
}

const MISSING_CAPABILITY = -32_021

/** Returns the text under a key of a request's envelope. */
function textIn({ _meta: meta }: JsonObject, key: string): string | undefined {
  const value = isObject(meta) ? meta[key] : undefined
  return typeof value === 'string' ? value : undefined
}
