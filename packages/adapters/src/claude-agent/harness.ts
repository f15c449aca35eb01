import { isDeepStrictEqual } from 'node:util'
import { type Cancelling, createCanceller } from '@toolgate/core/internal'

/**
 * What is used of the SDK, by shape: nothing of it is imported, as it brings a harness of hundreds of megabytes.
 *
 * Callbacks of the user's own pass through with whatever types the installed SDK gives them.
 */

/** What a hook of the SDK is given. The fields beyond these depend on the event. */
interface HookInput {
  readonly session_id: string
  /** Only within a subagent. */
  readonly agent_id?: string
}

export interface ToolHookInput extends HookInput {
  readonly tool_name: string
  readonly tool_input: unknown
  readonly tool_use_id?: string
  /** Absent for built-ins, and before the SDK told it. */
  readonly mcp_server?: { readonly name: string; readonly source: string }
}

export interface PostToolUseInput extends ToolHookInput {
  readonly tool_response: unknown
}

export interface PostToolUseFailureInput extends ToolHookInput {
  readonly error: string
  readonly is_interrupt?: boolean
}

/** All calls of one message of the model, once each has its result: also those that no other hook was asked about. */
export interface PostToolBatchInput extends HookInput {
  readonly tool_calls: readonly {
    readonly tool_name: string
    readonly tool_input: unknown
    readonly tool_use_id: string
    readonly tool_response?: unknown
  }[]
}

export interface HookCallbackOptions {
  readonly signal: AbortSignal
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

/** What `tool()` of the SDK gives. */
export interface SdkTool {
  readonly name: string
  readonly description: string
  /** Zod schemas by the names of the fields. */
  readonly inputSchema: object
  readonly annotations?: object | undefined
  readonly _meta?: Record<string, unknown> | undefined
  // oxlint-disable-next-line typescript/no-explicit-any -- it takes what its own schema gives
  handler(input: any, extra: unknown): Promise<object>
}

const PREFIX = 'mcp__'

/** The names of a server and of its tool, as the harness joins them; `undefined` for a built-in. */
export function partsOfName(name: string): { readonly server: string; readonly tool: string } | undefined {
  if (!name.startsWith(PREFIX)) return undefined
  const end = name.indexOf('__', PREFIX.length)
  if (end <= PREFIX.length || end + 2 >= name.length) return undefined
  return { server: name.slice(PREFIX.length, end), tool: name.slice(end + 2) }
}

export function toServerPrefix(server: string): string {
  return `${PREFIX}${toHarnessName(server)}__`
}

/** The harness writes names so. */
export function toHarnessName(name: string): string {
  return name.replaceAll(/[^A-Za-z0-9_-]/g, '_')
}

/**
 * An execution by the harness, as the gate's door sees it: it begins when the door lets the call through, and ends when
 * the harness says how it went. In between the call counts as running, so that a halt, a deadline and the closing of the
 * gate reach it: all they can do is to stop the whole query.
 */
export class HarnessExecution {
  /** Resolves with the input that is to be run, as the gate has decided it. */
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

  /** Whether this input is the one that the gate has let through. */
  isOf(input: unknown): boolean {
    return this.#decided !== undefined && isDeepStrictEqual(this.#decided.input, input)
  }

  /** What the tool of the gate gives: `gate` says when the gate wants it stopped. */
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

  /** Nobody runs it, or nobody will say how it went. */
  abandon(reason: Error): void {
    this.#isOver = true
    this.#canceller.abort(reason)
  }
}
