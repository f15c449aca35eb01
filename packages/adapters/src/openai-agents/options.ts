import type { RunContext, ToolErrorFormatter } from '@openai/agents'
import type { Caller, ViewOptions } from '@toolgate/core'
import { type MaybePromise, type Shape, shapeOf } from '@toolgate/core/internal'
import { VIEW_KEYS } from '../shared/guard-options.ts'
import type { AnyTool } from './sdk.ts'

export interface GuardOptions<Name extends string = string, Context = unknown> extends ViewOptions<Name> {
  /**
   * Who runs the agent, for instance `(run) => run.context.caller`. Asked again at each step and call; where the answer
   * is another one, what the run sees is that caller's from then on. A function must return a caller that
   * `defineCaller` made: a context that was read back from a saved state is anybody's claim.
   */
  readonly caller: Caller | ((runContext: RunContext<Context>) => MaybePromise<Caller>)
  /**
   * Names the run in the audit, and binds approvals to it: give the same one when the run is resumed. Default: a
   * random one, to which approvals are not bound.
   */
  readonly runId?: ((runContext: RunContext<Context>) => string | undefined) | undefined
  /** Hosted and other tools that no gate governs, and that everybody may use: they are passed on as they are. */
  readonly ungoverned?: readonly AnyTool[] | undefined
  /** Your own, asked where the gate has nothing to say: a call that you rejected, a tool that this agent lacks. */
  readonly toolErrorFormatter?: ToolErrorFormatter | undefined
}

export const SHAPE: Shape = shapeOf<GuardOptions>({
  ...VIEW_KEYS,
  caller: true,
  runId: true,
  ungoverned: true,
  toolErrorFormatter: true,
})
