import type { Caller } from '../caller.ts'
import type { Tool } from './tool.ts'

/** How far a call has come, as MCP's progress notification says it. */
export interface Progress {
  readonly progress: number
  readonly total?: number | undefined
  readonly message?: string | undefined
}

/** What a tool's `execute` gets beside its input. */
export interface CallContext {
  readonly callId: string
  readonly tool: Tool
  readonly caller: Caller
  /** Aborts when the caller goes away and at the call's deadline. */
  readonly signal: AbortSignal
  readonly onProgress: ((progress: Progress) => void) | undefined
}
