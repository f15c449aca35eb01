// `@toolgate/change/internal`: shared by the packages of Toolgate only. Not part of the public API; may change in any release.

export { comparePeople } from './access.ts'
export { type ClauseExample, type ClauseExamples, findClauseExamples } from './clause-examples.ts'
export { checkHistory, dryRun, type DryRun } from './dry-run.ts'
export { type RightsKey, rightsKeyOf } from './equal-rights.ts'
export type { NeededChange } from './needed-change.ts'
export { unlock } from './scene.ts'
export { createTrial } from './trial.ts'
export { whatWouldAllow } from './what-would-allow.ts'
