import type { RunContext, ToolErrorFormatter } from '@openai/agents'
import { type Shape, shapeOf } from '@toolgate/core/internal'
import { GUARD_KEYS, type GuardOptions as SharedOptions } from '../shared/guard-options.ts'
import type { AnyTool } from './sdk.ts'

/** `caller` is, for instance, `(run) => run.context.caller`. A context that was read back from a saved state is anybody's claim. */
export interface GuardOptions<Name extends string = string, Context = unknown> extends SharedOptions<
  Name,
  RunContext<Context>,
  AnyTool
> {
  /** Hosted and other tools that no gate governs, and that everybody may use: they are passed on as they are. */
  readonly ungoverned?: readonly AnyTool[] | undefined
  /** Your own, asked where the gate has nothing to say: a call that you rejected, a tool that this agent lacks. */
  readonly toolErrorFormatter?: ToolErrorFormatter | undefined
}

export const SHAPE: Shape = shapeOf<GuardOptions>({ ...GUARD_KEYS, toolErrorFormatter: true })
