import type { Caller, Gate } from '@toolgate/core'
import type { HooksInput } from '@toolgate/core/internal'
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

// The SDK infers its runtime context from several options at once: `any` leaves that to the others.
// oxlint-disable-next-line typescript/no-explicit-any
type AnyContext = any

/** The tool map that a gate was made of, where `fromAiSdk` brought it in. */
export type ToolsOf<Native> = Native extends ToolSet ? Native : ToolSet

/** What `prepareStep` is given beside what the SDK gives it. */
export interface GuardedStep<Name extends string = string> {
  readonly caller: Caller
  /** The ids that the run sees now. */
  readonly visibleTools: readonly Name[]
  /** Whether a call of this tool has ended `done` in an earlier step. */
  hasUsedTool(tool: string): boolean
  /** Every call of the earlier steps, oldest first. */
  previousToolCalls(): readonly StepCall[]
}

/**
 * The SDK's own `prepareStep`, or one that looks at what Toolgate gives it: `withTools('search')` and `unchanged()` are
 * answers, too. `activeTools` can only narrow what the run sees; a name that no tool has is an error at once.
 */
export type GuardedPrepareStep<Tools extends ToolSet = ToolSet> = (
  options: Parameters<PrepareStepFunction<Tools, AnyContext>>[0] & GuardedStep<keyof Tools & string>,
) => PromiseLike<GuardedStepResult<Tools>> | GuardedStepResult<Tools>

export type GuardedStepResult<Tools extends ToolSet = ToolSet> =
  | PrepareStepResult<Tools, AnyContext>
  | (StepChange<AnyContext> & { readonly activeTools?: readonly (keyof Tools & string)[] | undefined })
  | undefined

export interface GuardOptions<Tools extends ToolSet = ToolSet> extends RunOptions<keyof Tools & string> {
  /** Yours: what it narrows stays narrowed, and it cannot widen. */
  readonly prepareStep?: GuardedPrepareStep<Tools> | undefined
  /** Yours: the stricter of it and of the gate holds. */
  readonly toolApproval?: ToolApprovalConfiguration<Tools, AnyContext> | undefined
  /**
   * What happens to a call that a person must approve. `wait`: the SDK pauses. `tell`: the model is told that the call
   * waits, and the run goes on; the same call made again, in this run or a later one, runs once somebody has approved it.
   * Default `wait`.
   */
  readonly approvals?: 'wait' | 'tell' | undefined
  /** Yours: asked first, of calls that the SDK cannot read. What it makes of them goes through the gate as any call. */
  readonly repairToolCall?: ToolCallRepairFunction<Tools> | undefined
  /**
   * `filter` sends what a step sees. `mask` sends what the run sees, and has the provider choose among what the step
   * sees, so that its prompt cache keeps hitting. Default `filter`.
   */
  readonly mode?: 'filter' | 'mask' | undefined
  /** Whose means `mask` uses. */
  readonly provider?: 'openai' | 'google' | undefined
  /** Asked before those of the gate, at each call. */
  readonly hooks?: HooksInput | undefined
  /** What a tool's execution options get beside what the SDK gives them. */
  readonly extend?: ((options: ToolExecutionOptions<AnyContext>) => object) | undefined
  /**
   * Tools that are not executed in this process, and are offered nevertheless: `true` for all. The provider or the
   * client runs them, so nothing here can stop them. Default: none.
   */
  readonly acceptUnenforceable?: boolean | readonly (keyof Tools & string)[] | undefined
}

/** Spread it into `generateText`, `streamText`, a `ToolLoopAgent` or what its `prepareCall` gives. */
export interface Guarded<Tools extends ToolSet = ToolSet> {
  /** Those that the run sees. What they run goes through the gate, whatever the other options say. */
  readonly tools: Tools
  readonly prepareStep: PrepareStepFunction<Tools, AnyContext>
  readonly toolApproval: GenericToolApprovalFunction<Tools, AnyContext, AnyContext>
  readonly repairToolCall: ToolCallRepairFunction<Tools>
  /** The same, by its name before version 7 of the SDK. */
  readonly experimental_repairToolCall: ToolCallRepairFunction<Tools>
  /** Finds out whether the SDK was given other tools: then each step is an error. Your `onStart` takes its place. */
  readonly experimental_onStart: (event: object) => void
}

/** Await it before it is spread: spread as it is, it does not compile, and throws. */
export type GuardedPromise<Tools extends ToolSet = ToolSet> = Unawaited<
  Guarded<Tools>,
  'tools' | 'prepareStep' | 'toolApproval'
>

export type AnyGate = Pick<Gate, 'catalog' | 'view'>
