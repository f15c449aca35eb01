// `@toolgate/change`: tests of policies, and the effects of a change of rules.

// Tests of policies
export type { EarlierCall, ExpectedAnswers, PolicyTest, StatedHistory, Unlocking } from './policy-test.ts'
export type { TestProblem } from './check-tests.ts'
export type { MissedExpectation, TestedRules } from './scene.ts'
export type { FindUnlisted, StagedCatalog } from './stage.ts'
export {
  checkPolicyTests,
  type PolicyTestOptions,
  type PolicyTestReport,
  type PolicyTestResult,
  type TestedClause,
  testPolicies,
} from './run-tests.ts'

// Checks that a policy grants no more than another
export { comparePolicies, type ComparePoliciesOptions, type PolicyComparison } from './compare.ts'
export type { MoreGranted, NotCompared } from './comparison.ts'
export type { OtherCallers } from './supposed-callers.ts'
export type { ReadField } from './caller-reads.ts'

// Policies suggested from recorded calls
export {
  LEFT_OUT,
  type LeftOut,
  type SuggestedRole,
  type SuggestedTool,
  type Suggestion,
  type SuggestOptions,
  suggestPolicy,
} from './suggest.ts'

// A catalog as data
export {
  type CatalogSnapshot,
  formatSnapshot,
  itemsOfSnapshot,
  type RunStub,
  type SnapshotItem,
  takeSnapshot,
  toSnapshot,
} from './snapshot.ts'
export type { AccessDifference } from './access.ts'
export {
  type CallExample,
  type ChangedCalls,
  type RuleTally,
  type TallyState,
  UNKNOWN_PARTS,
  type UnknownPart,
} from './tally.ts'
export type { HashOf } from './recorded-facts.ts'
export { type MissingBefore, type ReadRecords, readRecords, type RecordSource } from './read-records.ts'
export { type InputOf, withInputs } from './sealed-calls.ts'
export type { TrialRules } from './trial.ts'
export {
  type RulesOfChange,
  type WhatIf,
  whatIf,
  type WhatIfOptions,
  type WhatIfProgress,
  type WhatIfState,
} from './what-if.ts'
