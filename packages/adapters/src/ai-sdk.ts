export { type AppliedApproval, applyApprovals, type ApplyApprovalsOptions } from './ai-sdk/apply-approvals.ts'
export { callerSchema } from './ai-sdk/caller-schema.ts'
export { fromAiSdk } from './ai-sdk/import-tools.ts'
export { guard } from './ai-sdk/guard.ts'
export { maskingFetch } from './ai-sdk/mask.ts'
export type {
  Guarded,
  GuardedPrepareStep,
  GuardedStep,
  GuardedStepResult,
  GuardOptions,
  ToolsOf,
} from './ai-sdk/options.ts'
export type { ToolOverlay } from './shared/overlay.ts'
export { RefusedCall } from './shared/refused.ts'
export type { GuardedCallEvent } from './shared/runs.ts'
export {
  type ToolMapCall,
  type ToolMapCaller,
  type ToolMapEnd,
  type ToolMapExecution,
  type ToolMapHooks,
  type WrappedToolMap,
  wrapToolMapWithHooks,
  type WrapToolMapOptions,
} from './ai-sdk/wrap-tool-map.ts'
