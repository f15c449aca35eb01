import type { Caller, Gate } from '@toolgate/core'
import type { HooksInput } from '@toolgate/core/call'
import type { StepCall, StepChange } from '@toolgate/core/steps'
import type {
  GenericToolApprovalFunction,
  PrepareStepFunction,
  PrepareStepResult,
  ToolApprovalConfiguration,
  ToolCallRepairFunction,
  ToolExecutionOptions,
  ToolSet,
} from 'ai'
import type { RunOptions } from '../shared/guard-options.ts'
import type { Unawaited } from '../shared/unawaited.ts'

// The SDK infers its runtime context from several options. `any` keeps this type out of the inference.
// oxlint-disable-next-line typescript/no-explicit-any
type AnySdkContext = any

/** The tool map that `fromAiSdk` imported. */
export type ToolsOf<Native> = Native extends ToolSet ? Native : ToolSet

/** The fields that `prepareStep` gets in addition to the SDK's. */
export interface GuardedStep<Name extends string = string> {
  readonly caller: Caller
  /** The ids that the run sees now. */
  readonly visibleTools: readonly Name[]
  /**
   * Returns whether a call of this tool ended `done` in an earlier step.
   *
   * @throws {ConfigError} for a name that no tool has, if the gate's tools are fixed
   */
  hasUsedTool(tool: Name | 'request_tools'): boolean
  /** Every call of the earlier steps, oldest first. */
  previousToolCalls(): readonly StepCall[]
}

/**
 * The SDK's own `prepareStep`, with more fields. It may also return `withTools('search')` or `unchanged()`.
 * `activeTools` can only narrow what the run sees. An unknown name throws.
 */
export type GuardedPrepareStep<Tools extends ToolSet = ToolSet> = (
  options: Parameters<PrepareStepFunction<Tools, AnySdkContext>>[0] & GuardedStep<keyof Tools & string>,
) => PromiseLike<GuardedStepResult<Tools>> | GuardedStepResult<Tools>

export type GuardedStepResult<Tools extends ToolSet = ToolSet> =
  | PrepareStepResult<Tools, AnySdkContext>
  | (StepChange<AnySdkContext> & { readonly activeTools?: readonly (keyof Tools & string)[] | undefined })
  | undefined

export interface GuardOptions<Tools extends ToolSet = ToolSet> extends RunOptions<keyof Tools & string> {
  /** Your own `prepareStep`. It can narrow what a step sees, but not widen it. */
  readonly prepareStep?: GuardedPrepareStep<Tools> | undefined
  /** Your own `toolApproval`. The stricter of its answer and the gate's applies. */
  readonly toolApproval?: ToolApprovalConfiguration<Tools, AnySdkContext> | undefined
  /**
   * The handling of a call that a person must approve. `wait`: the SDK pauses. `tell`: the model is told that the call
   * waits, and the run continues; the same call made again, in this run or a later one, runs once a person has approved it.
   * Default `wait`.
   */
  readonly approvals?: 'wait' | 'tell' | undefined
  /**
   * Your own repair function. It is called first for calls that the SDK cannot read. A repaired call goes through the
   * gate like any other.
   */
  readonly repairToolCall?: ToolCallRepairFunction<Tools> | undefined
  /**
   * `filter` sends the tools of the step. `mask` sends the tools of the run, and has the provider choose among those of
   * the step, so that its prompt cache keeps hitting. Default `filter`.
   */
  readonly mode?: 'filter' | 'mask' | undefined
  /** The provider that `mask` is for. */
  readonly provider?: 'openai' | 'google' | undefined
  /**
   * Whether the run continues after a pause. If its history is lost, rules that read the history use their strictest
   * answer. Default `false`.
   */
  readonly resumed?: boolean | undefined
  /** Hooks that run before the gate's own, at each call. */
  readonly hooks?: HooksInput | undefined
  /** Returns more options for a tool's execution, beside the SDK's. */
  readonly extend?: ((options: ToolExecutionOptions<AnySdkContext>) => object) | undefined
  /**
   * Tools that are offered although other processes execute them: `true` for all. The provider or the client runs them, so
   * nothing here can stop them. Default: none.
   */
  readonly acceptUnenforceable?: boolean | readonly (keyof Tools & string)[] | undefined
}

/** Spread it into `generateText`, `streamText`, a `ToolLoopAgent` or the result of its `prepareCall`. */
export interface Guarded<Tools extends ToolSet = ToolSet> {
  /** The tools that the run sees. Their calls go through the gate, whatever the other options are. */
  readonly tools: Tools
  readonly prepareStep: PrepareStepFunction<Tools, AnySdkContext>
  readonly toolApproval: GenericToolApprovalFunction<Tools, AnySdkContext, AnySdkContext>
  readonly repairToolCall: ToolCallRepairFunction<Tools>
  /** `repairToolCall` under its name in version 6 of the SDK. */
  readonly experimental_repairToolCall: ToolCallRepairFunction<Tools>
  /** Detects that the SDK got other tools: then each step throws. Your own `onStart` replaces it. */
  readonly experimental_onStart: (event: object) => void
}

/**
 * A promise of the options. Await it before you spread it. Otherwise the code does not compile, and throws when it
 * runs.
 */
export type GuardedPromise<Tools extends ToolSet = ToolSet> = Unawaited<
  Guarded<Tools>,
  'tools' | 'prepareStep' | 'toolApproval'
>

export type AnyGate = Pick<Gate, 'catalog' | 'view'>
