import type { RunContext, ToolErrorFormatter } from '@openai/agents'
import { type Shape, shapeOf } from '@toolgate/values'
import { GUARD_KEYS, type GuardOptions as SharedOptions } from '../shared/guard-options.ts'
import type { AnyTool } from './sdk.ts'

/**
 * The options of `guard`. `caller` is for instance `(run) => run.context.caller`. The context of a saved state may be
 * forged.
 */
export interface GuardOptions<Name extends string = string, Context = unknown> extends SharedOptions<
  Name,
  RunContext<Context>,
  AnyTool
> {
  /** Hosted and other tools that the gate does not control and that everyone may use. They are passed on unchanged. */
  readonly ungoverned?: readonly AnyTool[] | undefined
  /**
   * Your own formatter. It is called if the gate has no text: for a call that you rejected, or a tool that this agent
   * lacks.
   */
  readonly toolErrorFormatter?: ToolErrorFormatter | undefined
}

export const SHAPE: Shape = shapeOf<GuardOptions>({ ...GUARD_KEYS, toolErrorFormatter: true })
