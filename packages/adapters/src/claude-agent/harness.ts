import { isDeepStrictEqual } from 'node:util'
import { type Cancelling, createCanceller } from '@toolgate/values'

/**
 * The parts of the SDK that are used, by shape. Nothing is imported, because the SDK brings a harness of hundreds of megabytes.
 *
 * The user's own callbacks keep the types of the installed SDK.
 */

/** The input of an SDK hook. The fields beyond these depend on the event. */
interface HookInput {
  readonly session_id: string
  /** The agent's id. Present only within a subagent. */
  readonly agent_id?: string
}

export interface ToolHookInput extends HookInput {
  readonly tool_name: string
  readonly tool_input: unknown
  readonly tool_use_id?: string
  /** Absent for built-ins, and in earlier versions of the SDK. */
  readonly mcp_server?: { readonly name: string; readonly source: string }
}

export interface PostToolUseInput extends ToolHookInput {
  readonly tool_response: unknown
}

export interface PostToolUseFailureInput extends ToolHookInput {
  readonly error: string
  readonly is_interrupt?: boolean
}

/** All calls of one message of the model, once each has a result. It includes calls for which no other hook ran. */
export interface PostToolBatchInput extends HookInput {
  readonly tool_calls: readonly {
    readonly tool_name: string
    readonly tool_input: unknown
    readonly tool_use_id: string
    readonly tool_response?: unknown
  }[]
}

// oxlint-disable typescript/no-explicit-any -- the user's callbacks are typed by their SDK: `unknown` would reject them
export type HookCallback = (input: any, toolUseId: string | undefined, options: { signal: AbortSignal }) => Promise<any>

export interface HookMatcher {
  matcher?: string
  hooks: HookCallback[]
  /** Seconds. */
  timeout?: number
  onFailure?: 'continue' | 'block'
}

export type HookMatchers = Record<string, HookMatcher[]>

export type CanUseTool = (name: string, input: Record<string, unknown>, options: any) => Promise<any>

export type McpServers = Record<string, any>
// oxlint-enable typescript/no-explicit-any

/** The result of the SDK's `tool()`. */
export interface SdkTool {
  readonly name: string
  readonly description: string
  /** Zod schemas by field name. */
  readonly inputSchema: object
  readonly annotations?: object | undefined
  readonly _meta?: Record<string, unknown> | undefined
  // oxlint-disable-next-line typescript/no-explicit-any -- it takes what its own schema gives
  handler(input: any, extra: unknown): Promise<object>
}

const PREFIX = 'mcp__'

/** The names of a server and its tool, which the harness joins; `undefined` for a built-in. */
export function partsOfName(name: string): { readonly server: string; readonly tool: string } | undefined {
  if (!name.startsWith(PREFIX)) return undefined
  const end = name.indexOf('__', PREFIX.length)
  if (end <= PREFIX.length || end + 2 >= name.length) return undefined
  return { server: name.slice(PREFIX.length, end), tool: name.slice(end + 2) }
}

export function toServerPrefix(server: string): string {
  return `${PREFIX}${toHarnessName(server)}__`
}

/** Returns a name as the harness writes it. */
export function toHarnessName(name: string): string {
  return name.replaceAll(/[^A-Za-z0-9_-]/g, '_')
}

/**
 * An execution by the harness, as the gate sees it. It begins when the gate allows the call, and ends when
 * the harness reports the result. In between the call counts as running, so a halt, a deadline and the closing of the
 * gate reach it. All they can do is stop the whole query.
 */
export class HarnessExecution {
  /** Resolves with the input to run, as the gate has decided it. */
  readonly begun: Promise<unknown>
  readonly cancelling: Cancelling
  readonly #canceller = createCanceller()
  readonly #begun = Promise.withResolvers<unknown>()
  readonly #end = Promise.withResolvers<unknown>()
  readonly #stopQuery: (reason: unknown) => void
  #decided: { readonly input: unknown } | undefined
  #isOver = false

  constructor(stopQuery: (reason: unknown) => void) {
    this.#stopQuery = stopQuery
    this.begun = this.#begun.promise
    this.cancelling = this.#canceller
  }

  get isOpen(): boolean {
    return this.#decided !== undefined && !this.#isOver
  }

  /** Whether the gate has allowed this input. */
  isOf(input: unknown): boolean {
    return this.#decided !== undefined && isDeepStrictEqual(this.#decided.input, input)
  }

  /** Starts the execution, as the `execute` of the gate's tool. `gate` aborts when the gate stops the call. */
  begin(input: unknown, gate: Cancelling): Promise<unknown> {
    this.#decided = { input }
    gate.onAbort(() => {
      if (this.#isOver) return
      this.#isOver = true
      this.#stopQuery(gate.reason)
    })
    this.#begun.resolve(input)
    return this.#end.promise
  }

  done(output: unknown): void {
    if (!this.isOpen) return
    this.#isOver = true
    this.#end.resolve(output)
  }

  fail(error: Error): void {
    if (!this.isOpen) return
    this.#isOver = true
    this.#end.reject(error)
  }

  /** Ends a call that will not run, or whose result will stay unknown. */
  abandon(reason: Error): void {
    this.#isOver = true
    this.#canceller.abort(reason)
  }
}
