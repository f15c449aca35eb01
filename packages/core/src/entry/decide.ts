// `@toolgate/core/decide`: the decision, layer by layer. For packages that build on core, such as `@toolgate/change`; may
// change in any release.

// The decision and its texts
export {
  answersOf,
  type CallFacts,
  decide,
  type Decided,
  decideShadows,
  decideWithInput,
  type LayerAnswer,
  readsCall,
  readsRun,
} from '../decide/decide.ts'
export {
  ASKED_LAYERS,
  compareStrictness,
  type DependsOn,
  LAYER_ORDER,
  mayGoOn,
  type MayStill,
  OUTCOMES,
  reason,
  ruleText,
  strictest,
} from '../decide/decision.ts'
export { messageFor, readsAsUnknown } from '../decide/message.ts'

// Rules as they are evaluated
export type { PolicySnapshot } from '../decide/policy-snapshot.ts'
export { evaluate, type Evaluation, reasonsAt } from '../decide/evaluation.ts'
export {
  answerOf,
  type ClauseIndex,
  Failure,
  indexPolicy,
  isAtCall,
  type PolicyIndex,
} from '../decide/layers/clauses.ts'
export { callerEffects, fixedEffects } from '../decide/layers/policy.ts'
export { templatesOf } from '../decide/templates.ts'
export { type ClauseCoverage, unjudgedId } from '../decide/coverage.ts'
export { hasBit } from '../tools/bits.ts'

// The history of a run, as rules read it
export {
  createOriginIndex,
  type OriginBounds,
  type OriginIndex,
  type OriginItem,
} from '../history/origins/origin-index.ts'
export { type CallPattern, type RunFacts, strictestFacts, UNTRUSTED } from '../history/facts.ts'
export { CallHistory } from '../history/call-history.ts'
export { Histories, type RunHistory } from '../history/histories.ts'
export { parseLabels } from '../history/labels.ts'
export type { RaisedLabel } from '../history/monitor.ts'
export { OpenHistory } from '../history/open-history.ts'
export { valuesOf } from '../history/rules.ts'
