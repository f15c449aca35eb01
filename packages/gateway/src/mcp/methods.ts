import { type WireNames } from '@toolgate/expose'
import { isObject, type JsonObject } from '@toolgate/values/json'
import type { Authenticator } from '../auth/credential.ts'
import type {
  CallInputRequired,
  CallOutcome,
  CallRefused,
  Caller,
  CallWaiting,
  Progress,
  Tool,
  View,
} from '@toolgate/core'
import {
  callTool,
  checkListParams,
  errorResult,
  isMetaTool,
  type McpResult,
  readCall,
  type RequestId,
  toAnswer,
  type ToolLists,
  unwrapOutcome,
} from '@toolgate/mcp'
import { readsAsUnknown } from '@toolgate/core/decide'
import { isLargeResult, nextTurn } from '../util/next-turn.ts'
import { clientLink, type LinkTasks } from '../servers/asks/client-link.ts'
import type { Declaring, Era, Method, Serving } from '../calls/method.ts'
import { isStartedTask, TASKS_EXTENSION } from '../servers/asks/upstream-tasks.ts'
import { type FindTracing, type ServedRequest, traced, type TracedMethod } from '../telemetry/tracing.ts'
import { checkParamHeaders } from './param-headers.ts'
import { ownerOf, toCreated } from './tasks/methods.ts'
import { RoomHook } from './tasks/room-hook.ts'
import type { ServedTasks } from './tasks/start.ts'
import { isTooLarge } from './tasks/task-store.ts'
import { type TaskRoom, TooManyTasks } from './tasks/task.ts'
import { paramHeadersOf } from '../servers/transport/param-headers.ts'
import type { McpReply, McpRequest } from '../calls/request.ts'
import { RpcFault } from '../model/protocol.ts'
import { lackingScopes } from '../model/scopes.ts'

/** Returns the capabilities that the gateway declares to a client. */
export type Capabilities = (client: Declaring) => JsonObject

export interface MethodDeps extends Serving {
  /** The methods that the rooms of the gateway bring. */
  readonly methods: () => readonly Method[]
  /** Returns the header with the scopes that a call needs. Without it, the call's result states them. */
  readonly scopeChallenge?: (scopes: readonly string[]) => string
  readonly lists: Pick<ToolLists, 'listed' | 'names'>
  /**
   * Waits for the lists that only this caller has. `undefined` means that there is nothing to wait for. Default: never
   * waits.
   */
  readonly prepare?: ((caller: Caller, isList: boolean) => Promise<unknown> | undefined) | undefined
  /** Waits for the first lists of servers that are starting. `undefined`: there is nothing to wait for. */
  readonly firstLists?: (() => Promise<unknown> | undefined) | undefined
  /** Authenticates callers again before their calls run. */
  readonly authenticator: Pick<Authenticator, 'renewed'>
  /** The path of the endpoint: the OAuth resource of its tokens. Default `/mcp`. */
  readonly resource?: string
  /** Absent if calls cannot become tasks. */
  readonly tasks?: Pick<ServedTasks, 'tasks' | 'approvalTasks' | 'isRunBy'> | undefined
  /** Returns the tracing of requests, if it is enabled. */
  readonly tracing?: FindTracing | undefined
}

/**
 * The table of methods for one era: `tools/list`, `tools/call`, the era's own methods, and those that rooms bring. The
 * code of the era wraps them in its envelope.
 */
export class McpMethods {
  readonly #deps: MethodDeps
  readonly #toolLists = new WeakMap<View, McpReply>()
  /** Lists that may lack items, by the same list without the reason. */
  readonly #incomplete = new WeakMap<McpReply, { readonly problem: string; readonly reply: McpReply }>()
  readonly #rows: ReadonlyMap<string, Method>

  constructor(deps: MethodDeps, era: Era, own: readonly Method[] = []) {
    this.#deps = deps
    const rows: readonly Method[] = [
      ...deps.methods().filter((row) => (row.era ?? era) === era),
      { name: 'tools/list', serve: (request) => this.#listTools(request) },
      { name: 'tools/call', serve: this.#callTool },
      ...own,
    ]
    this.#rows = new Map(rows.map((row) => [row.name, row]))
  }

  /** Returns the answer to a request; `undefined` for an unknown method. @throws {RpcFault} */
  answer(method: string, request: McpRequest): Promise<McpReply> | undefined {
    const row = this.#rows.get(method)
    if (!row) return undefined
    const operation =
      row.isTraced === false ? undefined : this.#deps.tracing?.()?.startServed(this.#toServed(row.name, request))
    const isList = row.needsLists !== false && method.endsWith('/list')
    const listed = row.needsLists === false ? undefined : this.#prepare(request, method, isList)
    const serve = () => {
      const problem = isList ? this.#deps.listProblemOf?.(request.caller) : undefined
      const reply = row.serve(request, this.#deps)
      return problem === undefined ? reply : reply.then((list) => this.#withProblem(list, problem))
    }
    if (!operation && !listed) return serve()
    const answer = () => (listed ? listed.then(serve) : serve())
    return operation ? traced(operation, answer) : answer()
  }

  /** Waits for the lists that a request needs: those of its caller, and those of servers that are starting. */
  #prepare({ caller, params }: McpRequest, method: string, isList: boolean): Promise<unknown> | undefined {
    const { prepare, firstLists, lists } = this.#deps
    const own = prepare?.(caller, isList)
    const isLate = isList || (method === 'tools/call' && knownName(lists.names(), params['name']) === undefined)
    const first = isLate ? firstLists?.() : undefined
    return own && first ? Promise.all([own, first]) : (own ?? first)
  }

  /** Adds to a list why it may lack items. The same list with the same reason is the same reply. */
  #withProblem(reply: McpReply, problem: string): McpReply {
    if (!('result' in reply)) return reply
    const known = this.#incomplete.get(reply)
    if (known?.problem === problem) return known.reply
    const meta = isObject(reply.result['_meta']) ? reply.result['_meta'] : {}
    const result = { ...reply.result, _meta: { ...meta, [INCOMPLETE]: problem } }
    const incomplete = { problem, reply: { ...reply, result } }
    if (reply.isKept) this.#incomplete.set(reply, incomplete)
    return incomplete.reply
  }

  #toServed(method: TracedMethod, { id, params, protocolVersion }: McpRequest): ServedRequest {
    const { _meta: meta, name } = params
    return {
      method,
      tool: knownName(this.#deps.lists.names(), name),
      id: typeof id === 'bigint' ? String(id) : id,
      protocolVersion,
      meta,
    }
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

  async #begin(
    request: McpRequest,
    {
      view,
      tool,
      input,
      name,
      room,
    }: { view: View; tool: string; input: unknown; name: string; room: TaskRoom | undefined },
    outcome: CallInputRequired,
  ): Promise<McpReply> {
    const { tasks } = this.#deps
    const { params, link } = request
    const ttl = link.era === 'legacy' && isObject(params['task']) ? params['task']['ttl'] : undefined
    const ttlMs = typeof ttl === 'number' && ttl > 0 ? ttl : undefined
    try {
      const task = await tasks?.tasks.begin({
        owner: ownerOf(request),
        view,
        tool,
        input,
        client: link,
        ttlMs,
        outcome,
        room,
      })
      if (task) return { created: toCreated(request, task) }
    } catch (error) {
      if (!(error instanceof TooManyTasks)) throw error
      await view.call({ tool, continues: outcome.continues, as: { kind: 'abandoned', why: error.message } })
      return { result: errorResult(`${name} failed: ${error.message}`) }
    }
    return { result: errorResult(outcome.text) }
  }

  /** Returns the function that reserves room for the task that a call may become. */
  #roomFor(request: McpRequest, { namespace }: Tool, input: unknown): RoomHook | undefined {
    const { tasks } = this.#deps
    if (!tasks?.isRunBy(namespace)) return undefined
    return new RoomHook(() => tasks.tasks.reserve(ownerOf(request), input))
  }

  readonly #callTool = async (request: McpRequest): Promise<McpReply> => {
    const { gate, lists, rounds } = this.#deps
    const { name, input, progressToken } = parseCall(request.params)
    const view = await gate.view(request.caller)
    const names = lists.names(view)
    const tool = view.get(names.toId(name) ?? '')
    const repeated = tool && request.headers && paramHeadersOf(tool.inputSchema)
    if (repeated && request.headers) checkParamHeaders(repeated, input, request.headers)
    const { signal, callerNow } = request
    const wish = this.#deps.tasks ? wishOf(request) : NO_TASKS
    const own = wish.isWanted && isTaskless(request, tool, input) ? NO_TASKS : wish
    if (tool && this.#deps.tasks && request.params['task'] !== undefined) checkTaskCall(request, tool)
    const onProgress =
      progressToken === undefined
        ? undefined
        : (progress: Progress) => request.notify('notifications/progress', { ...progress, progressToken })
    const hook = own.isWanted && tool ? this.#roomFor(request, tool, input) : undefined
    const serving = rounds.serve(request, {
      view,
      tool,
      input,
      name,
      onProgress,
      isTask: hook !== undefined,
      nameOf: (outcome) => waitingCall(outcome, { tool, name, input }).name,
      call: async ({ context, ...round }) =>
        unwrapOutcome(
          await callTool({
            view,
            names,
            name,
            input,
            signal,
            onProgress,
            hooks: hook,
            callerNow,
            asker: request.client,
            ...round,
            context: own.isWanted ? clientLink({ ...context, tasks: own }) : context,
          }),
        ),
      toTask: async (outcome, requests) => {
        const { tasks } = this.#deps
        if (!tasks || !wish.isWanted || request.link.era !== 'modern') return undefined
        try {
          const task = await tasks.approvalTasks.begin({
            owner: ownerOf(request),
            view,
            ...waitingCall(outcome, { tool, name, input }),
            outcome,
            requests,
          })
          return { created: toCreated(request, task) }
        } catch (error) {
          // The client can still approve in another way.
          if (error instanceof TooManyTasks) return undefined
          throw error
        }
      },
      toFailure: (text) => ({ result: errorResult(text) }),
      toReply: async (outcome) => {
        if (outcome.status === 'input_required' && isStartedTask(outcome.payload) && tool)
          return this.#begin(request, { view, tool: tool.id, input, name, room: hook?.room }, outcome)
        if (outcome.status === 'refused') this.#checkScopes(outcome)
        const answer = toAnswer(outcome)
        if ('error' in answer) return answer
        const problem = this.#problemOf(request.caller, tool, outcome)
        if (problem !== undefined && outcome.status === 'refused')
          return { result: errorResult(`${outcome.text} ${problem}`) }
        if (problem !== undefined) return { result: withText(answer.result, problem) }
        if (isLargeResult(answer.result)) await nextTurn()
        return { result: withoutAbsent(answer.result, tool), tool }
      },
    })
    return hook ? serving.finally(() => hook.room?.release()) : serving
  }

  /**
   * Returns why a call may not have found its tool: for a name that the caller cannot call, and for what they found. It
   * does not depend on whether a tool has the name.
   */
  #problemOf(caller: Caller, tool: Tool | undefined, outcome: CallOutcome): string | undefined {
    const isUnfound = outcome.status === 'refused' && (!tool || readsAsUnknown(outcome.decision))
    if (!isUnfound && !(tool && isFinder(tool))) return undefined
    return this.#deps.listProblemOf?.(caller)
  }

  /**
   * Throws if a token with more scopes could make this call, so that the client learns which scopes (RFC 6750 §3.1).
   *
   * @throws {RpcFault} `scope_insufficient`
   */
  #checkScopes(outcome: CallRefused): void {
    const scopes = lackingScopes(outcome)
    const header = scopes && this.#deps.scopeChallenge?.(scopes)
    if (header === undefined) return
    throw new RpcFault('scope_insufficient', outcome.text, { headers: { 'www-authenticate': header } })
  }
}

/** Returns a result without a structured content of `null`, if the tool declares no output that could be `null`. */
function withoutAbsent(result: McpResult, tool: Tool | undefined): McpResult {
  if (result.structuredContent !== null || (tool?.outputSchema && result.isError !== true)) return result
  const { structuredContent: _, ...rest } = result
  return rest
}

/** The field in `_meta` of a list that may lack items: why. */
const INCOMPLETE = 'dev.toolgate/incomplete'

/** Returns a result with one more text for the model. */
function withText(result: McpResult, text: string): McpResult {
  return { ...result, content: [...(result.content ?? []), { type: 'text', text }] }
}

/** Whether a tool finds other tools, so that its results are lists too. */
function isFinder(tool: Tool): boolean {
  return isMetaTool(tool) && tool.name !== 'call_tool'
}

const NO_TASKS: LinkTasks = { isWanted: false }

/**
 * Returns how the client uses tasks for a call: before 2026-07-28 it requests a task, since then it declares support.
 */
function wishOf({ link, params }: McpRequest): LinkTasks {
  const { era, capabilities } = link
  const isWanted = era === 'modern' ? isObject(capabilities.extensions?.[TASKS_EXTENSION]) : isObject(params['task'])
  return { isWanted }
}

/**
 * Whether a call cannot become a task. A tool that calls another tool is not a server's task, and a task stores no
 * large input.
 */
function isTaskless({ link }: McpRequest, tool: Tool | undefined, input: unknown): boolean {
  return (tool !== undefined && isMetaTool(tool)) || (link.era === 'modern' && isTooLarge(input))
}

/** Returns the waiting call as the client spelled it: the requested call, or the call that `call_tool` made. */
function waitingCall(
  { approval }: CallWaiting,
  { tool, ...asked }: { readonly tool: Tool | undefined; readonly name: string; readonly input: unknown },
): { readonly name: string; readonly input: unknown } {
  if (approval.tool === tool?.id || !isObject(asked.input)) return asked
  const { name, arguments: input } = asked.input
  return { name: String(name), input }
}

/**
 * @throws {RpcFault} if a task is requested for a tool that does not run as a task (MCP 2025-11-25, tasks, "tool-level
 * negotiation")
 */
function checkTaskCall({ link }: McpRequest, { fields }: Tool): void {
  if (link.era === 'modern') return
  const execution = fields?.['execution']
  const support = isObject(execution) ? execution['taskSupport'] : undefined
  if (support !== 'optional' && support !== 'required')
    throw new RpcFault('method_unknown', 'This tool does not run as a task.')
}

/**
 * Returns the name of a call if a tool has this name. Otherwise clients could create spans and time series of any name.
 */
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
  if (progressToken !== undefined && !isToken(progressToken))
    throw new RpcFault('body_not_message', 'params._meta.progressToken must be a string or a number.')
  return { name, input, progressToken }
}

function isToken(value: unknown): value is RequestId {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint'
}
