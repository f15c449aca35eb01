export { askForInput, type InputRequest, type Question } from './ask-for-input.ts'
export type { BudgetName, BudgetReason, Budgets, Used } from './budgets.ts'
export { type CatalogFacts, type RenderCatalog, renderNotices } from './catalog-prompt.ts'
export type { AgentCall } from './result.ts'
export type { EventDetails, EventOrigin, PlannerEvent, PlannerListener } from './events.ts'
export type {
  Answers,
  SegmentOptions,
  PlannerForkOptions,
  PlannerOptions,
  PlannerStream,
  ResumeOptions,
  RunOptions,
} from './options.ts'
export { createPlanner, type Planner } from './planner.ts'
export type {
  FailureReason,
  PendingApproval,
  PendingCall,
  PendingInput,
  RunDone,
  RunFailed,
  RunPaused,
  RunReport,
  RunResult,
  RunStep,
  Usage,
} from './result.ts'
export type { ModelSettings } from './run/scope.ts'
export { subAgent, type SubAgentDefinition } from './sub-agent.ts'
export type { TokenKey } from './pause/store.ts'
