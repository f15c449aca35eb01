import type { ToolsInput } from '@mastra/core/agent'
import type { InputProcessorOrWorkflow } from '@mastra/core/processors'
import type { RequestContext } from '@mastra/core/request-context'
import type { ToolBeforeHookResult, ToolHookContext } from '@mastra/core/tools'
import { ConfigError, type Gate } from '@toolgate/core'
import { type Shape, shapeOf } from '@toolgate/values'
import {
  checkGiven,
  checkGuard,
  type FindCaller,
  GUARD_KEYS,
  type GuardOptions as SharedOptions,
} from '../shared/guard-options.ts'

/** A request as `guard` sees it: the context that was passed to `generate`, `stream`, or a resuming call. */
export interface GuardRequest {
  readonly requestContext: RequestContext
}

export interface GuardOptions<Name extends string = string> extends SharedOptions<Name, GuardRequest> {
  /**
   * Returns the caller: `defineCaller` must have made it, where your server authenticated the user. Any other object is
   * refused, because Mastra's server copies a request's body into the context. Called again for each call and each
   * resume, so a revoked role stops counting at once. If it throws, nothing runs.
   */
  readonly caller: FindCaller<GuardRequest>
  /**
   * Names the run in the audit, and binds approvals to it: return the same id when the run is resumed. Mastra does not
   * pass its own `runId` to tools, so put that into the context too. Default: a random id, to which approvals are not bound.
   */
  readonly runId?: ((request: GuardRequest) => string | undefined) | undefined
  /**
   * Names, or globs such as `agent-*`, of tools that run without the gate. Without this option, the tools of
   * `toolsets`, `clientTools`, memory, agents or workflows are neither sent nor run.
   */
  readonly ungoverned?: readonly string[] | undefined
}

const SHAPE: Shape = shapeOf<GuardOptions>(GUARD_KEYS)

/** @throws {ConfigError} for an invalid gate, an unknown option, and a caller or view that is not a function */
export function checkOptions(gate: unknown, options: GuardOptions): void {
  checkGuard(gate, options, SHAPE)
  checkGiven(options.caller)
  if (typeof options.caller !== 'function')
    throw new ConfigError('guard.caller', 'must be a function of the request, as an agent serves many callers')
}

/** The result of `guard`, to be spread into `new Agent({ … })`. */
export interface Guarded {
  readonly tools: (request: GuardRequest) => Promise<ToolsInput>
  readonly hooks: { readonly beforeToolCall: (call: ToolHookContext) => Promise<ToolBeforeHookResult | undefined> }
  readonly inputProcessors: InputProcessorOrWorkflow[]
}

export const PROCESSOR_ID = 'toolgate'

export type AnyGate = Pick<Gate, 'catalog' | 'view' | 'approvals'>
