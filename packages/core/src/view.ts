import type { Caller } from './caller.ts'
import type { Decision } from './decision/outcome.ts'
import type { Progress } from './door/execute.ts'
import type { CallOutcome } from './door/outcome.ts'
import type { Policy } from './policy/policy.ts'
import type { Tool } from './tools/tool.ts'

export interface CallRequest {
  /** A tool id. Adapters map wire names back. */
  readonly tool: string
  readonly input?: unknown
  /** Default: a random UUID. */
  readonly callId?: string
  readonly signal?: AbortSignal
  readonly onProgress?: (progress: Progress) => void
  /** Ends the execution after so many milliseconds. Default: the gate's. */
  readonly deadlineMs?: number
}

/** What one caller sees in one run: an immutable snapshot. */
export interface View {
  readonly caller: Caller
  /** The visible tools, by id. */
  readonly tools: readonly Tool[]
  readonly ids: readonly string[]
  readonly size: number
  /** Hash of the visible definitions, 32 hex digits: equal views have equal bytes. */
  readonly fingerprint: string
  has(id: string): boolean
  get(id: string): Tool | undefined
  /** Every layer's answer about a tool, the deciding one first. For people; never for the model. */
  explain(id: string): Decision
  /** A tighter view for a step or a sub-agent; availability is read anew. */
  narrow(options: { activeTools?: readonly string[]; policy?: Policy | readonly Policy[] }): View
  call(request: CallRequest): Promise<CallOutcome>
}
