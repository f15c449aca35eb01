import type { CallContext } from '@toolgate/core'
import type { AuditEntry } from '@toolgate/core/audit'
import { chain, messageOf, safely } from '@toolgate/values'
import { isObject, type JsonObject, toJsonText } from '@toolgate/values/json'
import { enterSaid } from '@toolgate/core/call'
import { McpError, RPC_CODES, RpcError, withoutNulls } from '@toolgate/mcp'
import type { ServerConfig } from '../../config/config.ts'
import { MAY_NOTHING, type ServerMay } from '../../config/may.ts'
import { clip } from '../transport/json-rpc.ts'
import { type AskRules, toForm, toUrl } from './ask-params.ts'
import { describeAsk } from './ask-text.ts'
import { type ClientCapabilities, type ClientLink, toClientLink } from './client-link.ts'
import type { HeldCalls } from './held-calls.ts'
import { hasTools, toSample } from './sample-params.ts'

/** The maximum number of requests from a server during one call, over all of its rounds in this process. */
export const MAX_ASKS = 10
/** The maximum number of log messages that one call passes on. */
const MAX_LOGS = 1_000
const MAX_LOG_CHARS = 64 * 1024

/** The error of a request for which the client lacks a capability (MCP 2026-07-28). */
const MISSING_CAPABILITY = -32_021
/** The error that asks a client to open URLs first (MCP 2025-11-25). */
const URLS_REQUIRED = -32_042

/** The kinds of requests of a server: those that `may` names, and samples with tools. */
type Want = 'elicit' | 'open' | 'sample' | 'tools' | 'roots'

const WANTS: Readonly<
  Record<
    Want,
    {
      readonly isAllowed: (may: ServerMay) => boolean
      /** The client's capability for it. `null` and `false` count as absent. */
      readonly capability: (client: ClientCapabilities) => unknown
      /** The client capabilities that are declared to the server. */
      readonly declared: JsonObject
      readonly toParams: (params: JsonObject, rules: AskRules) => JsonObject
    }
  >
> = {
  elicit: {
    isAllowed: ({ elicit }) => elicit,
    capability: ({ elicitation }) => elicitation && (elicitation.form ?? (elicitation.url ? undefined : elicitation)),
    declared: { elicitation: { form: {} } },
    toParams: toForm,
  },
  open: {
    isAllowed: ({ open }) => open.length > 0,
    capability: ({ elicitation }) => elicitation?.url,
    declared: { elicitation: { url: {} } },
    toParams: toUrl,
  },
  sample: {
    isAllowed: ({ sample }) => sample,
    capability: ({ sampling }) => sampling,
    declared: { sampling: {} },
    toParams: toSample,
  },
  tools: {
    isAllowed: ({ sample }) => sample,
    capability: ({ sampling }) => sampling?.['tools'],
    declared: { sampling: { tools: {} } },
    toParams: toSample,
  },
  roots: {
    isAllowed: ({ roots }) => roots,
    capability: ({ roots }) => roots,
    declared: { roots: {} },
    toParams: () => ({}),
  },
}

/** The names of the capabilities. */
const CAPABILITIES = ['elicitation', 'sampling', 'roots'] as const

const WANT_NAMES = Object.keys(WANTS) as Want[]

/** The requests that an entry allows its server, also as a list of words. */
interface AskedMay {
  readonly may: ServerMay
  readonly wants: readonly Want[]
}

/** The record of one request. Its policy revision and time are added later. */
export type AskEntry = Omit<AuditEntry, 'policy_revision' | 'catalog_revision' | 'wallMs'>

export interface ServerAsksOptions {
  readonly server: Pick<ServerConfig, 'name' | 'may' | 'per'>
  /** Whether an origin belongs to this gateway. */
  readonly isOwn: (origin: string) => boolean
  readonly record: (entry: AskEntry) => void
  /** The calls of all servers that wait for an answer while their client has no open request. */
  readonly held: HeldCalls
}

/** Checks and records the requests of one server to the clients of its calls, as its entry allows. */
export class ServerAsks {
  /** Whether the server may neither ask clients nor send them log messages. */
  readonly isSilent: boolean
  readonly #options: ServerAsksOptions
  readonly #may: AskedMay

  constructor(options: ServerAsksOptions) {
    this.#options = options
    const may = options.server.may ?? MAY_NOTHING
    const wants = WANT_NAMES.filter((want) => WANTS[want].isAllowed(may))
    this.#may = { may, wants }
    this.isSilent = wants.length === 0 && !may.log
  }

  /** Returns the requests of one call to its client. */
  ofCall(call: CallContext): CallAsks {
    return new CallAsks(this.#options, this.#may, call)
  }
}

/** The requests of a server during one call. */
export class CallAsks {
  /** The client; `undefined` for calls without a client, such as calls from the console. */
  readonly link: ClientLink | undefined
  /** The client capabilities to declare to the server: those that both its entry and the client allow. */
  readonly capabilities: JsonObject | undefined
  /** Whether log messages are passed on. */
  readonly mayLog: boolean
  readonly #options: ServerAsksOptions
  readonly #may: ServerMay
  readonly #wants: readonly Want[]
  readonly #call: CallContext
  #asks = 0
  #logs = 0

  constructor(options: ServerAsksOptions, { may, wants }: AskedMay, call: CallContext) {
    this.#options = options
    this.#may = may
    this.#wants = wants
    this.#call = call
    this.link = toClientLink(call.context)
    this.capabilities = this.#declared()
    this.mayLog = may.log && this.link !== undefined
  }

  get held(): HeldCalls {
    return this.#options.held
  }

  /**
   * Checks and records a request of the server. Returns its params for the client.
   *
   * @throws {RpcError} the error for the server
   */
  admit(method: string, params: JsonObject): JsonObject {
    return this.#admit(method, params, RPC_CODES.methodNotFound)
  }

  #admit(method: string, params: JsonObject, missing: number): JsonObject {
    // A server that asks in a loop must not fill the audit.
    if (++this.#asks > MAX_ASKS + 1) throw tooMany()
    try {
      const admitted = this.#check(method, params, missing)
      this.#record('relayed', describeAsk(method, admitted, params))
      return admitted
    } catch (error) {
      this.#record('refused', `${describeAsk(method, params)}: ${messageOf(error)}`)
      throw error
    }
  }

  /**
   * Checks and records the requests of an `input_required`. Returns them for the client.
   *
   * @throws {RpcError} the error for the client, if any request is refused, since the answers could not be complete
   */
  admitAll(requests: JsonObject): JsonObject {
    const admitted = Object.entries(requests).map(([key, request]) => {
      const { method, params } = request as { readonly method: string; readonly params?: JsonObject }
      return [key, { method, params: this.#admit(method, params ?? {}, MISSING_CAPABILITY) }] as const
    })
    return Object.fromEntries(admitted)
  }

  /** Returns the error to send to the client for a server's error. URLs that it asks the user to open are checked. */
  admitError(error: unknown): unknown {
    const rpc = error instanceof McpError ? error.rpc : undefined
    if (rpc?.code === MISSING_CAPABILITY) this.#recordMissing(rpc.data)
    if (rpc?.code !== URLS_REQUIRED) return error
    try {
      const asked = isObject(rpc.data) ? rpc.data['elicitations'] : undefined
      if (!Array.isArray(asked)) throw new RpcError(RPC_CODES.invalidParams, 'elicitations are missing.')
      const elicitations = asked.map((params: unknown) =>
        this.admit('elicitation/create', isObject(params) ? { ...params, mode: 'url' } : {}),
      )
      const { name } = this.#options.server
      return new RpcError(URLS_REQUIRED, `Server "${name}" asks for a page to be opened.`, { elicitations })
    } catch (refusal) {
      const { name } = this.#options.server
      const why = `Server "${name}" asked for a page to be opened, which was refused: ${messageOf(refusal)}`
      return new RpcError(RPC_CODES.internalError, why)
    }
  }

  /** Passes a log message on to the client, with the server's name. */
  readonly log = (params: JsonObject): void => {
    const { level, logger, data } = params
    if (!this.mayLog || ++this.#logs > MAX_LOGS || toJsonText(data ?? null).length > MAX_LOG_CHARS) return
    const { name } = this.#options.server
    const from = typeof logger === 'string' ? `${name}: ${logger.slice(0, 200)}` : name
    const message = { level, logger: from, data: data ?? null }
    // The message may be lost. If the history cannot be written, the end of the call fails too.
    safely(() => chain(this.enter(message), () => this.link?.log(message)))()
  }

  /** Adds a text of the server to the history of the run. The text must not be passed on before this resolves. */
  enter(said: unknown) {
    return enterSaid(this.#call, said)
  }

  #check(method: string, given: JsonObject, missing: number): JsonObject {
    if (this.#asks > MAX_ASKS) throw tooMany()
    const params = withoutNulls(given)
    const want = wantOf(method, params)
    if (!want || !WANTS[want].isAllowed(this.#may))
      throw new RpcError(RPC_CODES.methodNotFound, `The server may not ask for ${clip(method, 100)}.`)
    if (!this.#can(want)) {
      const data = { requiredCapabilities: WANTS[want].declared }
      const what = want === 'tools' ? 'tools in sampling/createMessage' : method
      throw new RpcError(missing, `The client of this call does not support ${what}.`, data)
    }
    return WANTS[want].toParams(params, {
      server: this.#options.server.name,
      mayOpen: (origin) => this.#mayOpen(origin),
    })
  }

  #mayOpen(origin: string): boolean {
    const { server, isOwn } = this.#options
    return server.per !== 'shared' && !isOwn(origin) && this.#may.open.includes(origin)
  }

  #can(want: Want): boolean {
    const { link } = this
    // A client of an earlier revision cannot be asked without a session.
    if (!link || (link.era === 'legacy' && link.ask === undefined)) return false
    const capability = WANTS[want].capability(link.capabilities) ?? false
    return capability !== false
  }

  #declared(): JsonObject | undefined {
    // Most servers may ask for nothing, and this code runs for each call.
    if (!this.link || this.#wants.length === 0) return undefined
    const wants = this.#wants.filter((want) => this.#can(want))
    if (wants.length === 0) return undefined
    return joinDeclared(wants.map((want) => WANTS[want].declared))
  }

  /** Records which capabilities the server misses, since only the operator knows whether its entry permits them. */
  #recordMissing(data: unknown): void {
    const required = isObject(data) && isObject(data['requiredCapabilities']) ? data['requiredCapabilities'] : {}
    for (const name of CAPABILITIES.filter((one) => Object.hasOwn(required, one))) {
      const isPermitted = this.#wants.some((want) => Object.hasOwn(WANTS[want].declared, name))
      const why = isPermitted ? 'its client does not have it' : 'its entry does not permit it (may)'
      this.#record('refused', `it needs the capability ${name}, but ${why}`)
    }
  }

  #record(reason: 'relayed' | 'refused', detail: string): void {
    const { caller, callId, tool } = this.#call
    const { user, tenant, session, agent, chat } = caller
    this.#options.record({
      event: 'server_asked',
      tool: tool.id,
      tool_call_id: callId,
      user_id: user,
      tenant,
      session_id: session,
      agent,
      chat_id: chat?.id,
      reason,
      detail: `${this.#options.server.name}: ${detail}`,
    })
  }
}

function tooMany(): RpcError {
  return new RpcError(RPC_CODES.internalError, `The server asked more than ${MAX_ASKS} times during one call.`)
}

function wantOf(method: string, params: JsonObject): Want | undefined {
  const { mode } = params
  switch (method) {
    case 'elicitation/create':
      return mode === 'url' ? 'open' : mode === undefined || mode === 'form' ? 'elicit' : undefined
    case 'sampling/createMessage':
      return hasTools(params) ? 'tools' : 'sample'
    case 'roots/list':
      return 'roots'
    default:
      return undefined
  }
}

/** Returns one object with the capabilities of several kinds, such as forms and URLs of `elicitation`. */
function joinDeclared(all: readonly JsonObject[]): JsonObject {
  const names = new Set(all.flatMap((one) => Object.keys(one)))
  return Object.fromEntries([...names].map((name) => [name, Object.assign({}, ...all.map((one) => one[name]))]))
}
