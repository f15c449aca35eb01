export {
  type ApprovalAnswer,
  type ApprovalInterrupt,
  type ApprovalMode,
  decideApprovals,
} from './langchain/approvals.ts'
export { guard, type GuardOptions } from './langchain/guard.ts'
export { type GuardedTools, guardTools } from './langchain/guard-tools.ts'
export type { GuardRuntime } from './langchain/runs.ts'
export { fromLangChain, type LangChainTool, type NativeTools } from './langchain/import-tools.ts'
export { answerOpenCalls } from './langchain/open-calls.ts'
export type { ToolOverlay } from './shared/overlay.ts'
export { RefusedCall } from './shared/refused.ts'
export type { GuardedCallEvent } from './shared/runs.ts'
