import type { CallOutcome, CallRefused, CallWaiting, View } from '@toolgate/core'
import type { HooksInput } from '@toolgate/core/internal'
import type { LanguageModel, ToolSet } from 'ai'
import type { Offered } from './offering.ts'
import type { AnyGate, GuardOptions } from './options.ts'

/** One step of the loop, as it was prepared. */
export interface OpenStep {
  readonly view: View
  readonly stepNumber: number
  readonly model: string | undefined
}

/** A call as the SDK's loop makes it. */
export interface LoopCall {
  readonly toolName: string
  readonly toolCallId: string
  readonly input: unknown
  /** Those of the step: by them it is known which step a call is of, as the same tools may be in several loops at once. */
  readonly messages: readonly unknown[] | undefined
  readonly abortSignal?: AbortSignal | undefined
  readonly context?: unknown
  readonly malformed?: string | undefined
  readonly hooks?: HooksInput | undefined
}

/** What the parts of a guard have in common: the run, its tools, and its steps. */
export interface LoopRun {
  readonly gate: AnyGate
  readonly view: View
  readonly options: GuardOptions
  /** By name on the wire: the object that the SDK's loop reads in each step. */
  readonly tools: Record<string, object>
  /** On each of them: whose they are. */
  readonly mark: object
  /** By the messages of a call of the SDK: why its tools cannot be trusted. */
  readonly spoiled: WeakMap<object, string>
  offered(name: string): Offered | undefined
  /** Offers what a view sees and was not offered before. */
  offer(view: View): void
  /** Those of the offered tools that a view sees, by their names on the wire; `undefined` where that is all of them. */
  namesOf(view: View): readonly string[] | undefined
  openStep(messages: readonly unknown[], step: OpenStep): void
  stepOf(messages: readonly unknown[] | undefined): OpenStep | undefined
  /** Yours has said what it thinks of this call; where a person must be asked, it runs only with that word. */
  hear(call: LoopCall, said: { readonly mustBeAsked: boolean }): void
  isHeard(call: LoopCall): boolean
  call(call: LoopCall): Promise<CallOutcome>
  /** Refuses, and records, a call in the name of something that has the right to: what the gate would refuse, it does. */
  refuse(call: LoopCall, by: string, reason: string | undefined): Promise<CallOutcome>
  /** Refuses, and records, a call of what was not sent. It runs nothing, also where the gate would let it. */
  refuseUnsent(call: LoopCall): Promise<CallOutcome>
  requestApproval(call: LoopCall): Promise<CallRefused | CallWaiting | undefined>
  warn(text: string): void
}

/** What a step is changed to, as the SDK takes it. */
export type StepChange = Readonly<Record<string, unknown>> & {
  readonly activeTools?: readonly string[] | undefined
  readonly messages?: readonly unknown[] | undefined
  readonly model?: LanguageModel | undefined
  readonly toolChoice?: 'auto' | 'none' | 'required' | { readonly type: 'tool'; readonly toolName: string } | undefined
  readonly providerOptions?: Readonly<Record<string, unknown>> | undefined
}

/** What the SDK asks about one call. */
export interface ApprovalQuestion {
  readonly toolCall: {
    readonly toolName: string
    readonly toolCallId: string
    readonly input: unknown
    readonly providerExecuted?: boolean | undefined
  }
  readonly tools: ToolSet | undefined
  readonly toolsContext: unknown
  readonly runtimeContext: unknown
  readonly messages: readonly unknown[]
}
