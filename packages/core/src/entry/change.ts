// `@toolgate/core/change`: tests of policies, and what a change of them would mean.

// Tests of policies
export type { EarlierCall, ExpectedAnswers, PolicyTest, StatedHistory, Unlocking } from '../change/policy-test.ts'
export type { TestProblem } from '../change/check-tests.ts'
export type { MissedExpectation, TestedRules } from '../change/scene.ts'
export type { FindUnlisted, StagedCatalog } from '../change/stage.ts'
export {
  checkPolicyTests,
  type PolicyTestOptions,
  type PolicyTestReport,
  type PolicyTestResult,
  type TestedClause,
  testPolicies,
} from '../change/run-tests.ts'

// Whether a policy grants no more than another
export { comparePolicies, type ComparePoliciesOptions, type PolicyComparison } from '../change/compare.ts'
export type { MoreGranted, NotCompared } from '../change/comparison.ts'
export type { OtherCallers } from '../change/supposed-callers.ts'
export type { ReadField } from '../change/caller-reads.ts'

// What calls have shown to be needed
export {
  LEFT_OUT,
  type LeftOut,
  type SuggestedRole,
  type SuggestedTool,
  type Suggestion,
  type SuggestOptions,
  suggestPolicy,
} from '../change/suggest.ts'

// A catalog as data
export {
  type CatalogSnapshot,
  formatSnapshot,
  itemsOfSnapshot,
  type RunStub,
  type SnapshotItem,
  takeSnapshot,
  toSnapshot,
} from '../change/snapshot.ts'
export type { AccessDifference } from '../change/access.ts'
export {
  type CallExample,
  type ChangedCalls,
  type RuleTally,
  type TallyState,
  UNKNOWN_PARTS,
  type UnknownPart,
} from '../change/tally.ts'
export type { HashOf } from '../change/recorded-facts.ts'
export { type MissingBefore, type ReadRecords, readRecords, type RecordSource } from '../change/read-records.ts'
export { type InputOf, withInputs } from '../change/sealed-calls.ts'
export type { TrialRules } from '../change/trial.ts'
export {
  type RulesOfChange,
  type WhatIf,
  whatIf,
  type WhatIfOptions,
  type WhatIfProgress,
  type WhatIfState,
} from '../change/what-if.ts'
