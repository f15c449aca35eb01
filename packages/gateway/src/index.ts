export { findAuditProblems, openAudit } from './config/open-stores.ts'
export { compareConfigs, configuredRules } from './admin/change/compare-configs.ts'
export type { ConfigComparison } from './model/config-comparison.ts'
export { readCatalogFile } from './admin/change/catalog-file.ts'
export {
  parseSentTests,
  type PolicyTestFile,
  type PolicyTestFileOptions,
  readPolicyTests,
} from './admin/change/policy-tests.ts'
export { toClauseRows, toRows } from './admin/change/test-rows.ts'
export type { FileResults, MissedRow, TestedClauseRow } from './model/test-rows.ts'
export { rulesOfChange } from './servers/catalog/rules-of-change.ts'
export type { GatewayConfig } from './config/config.ts'
export { mayWords } from './config/may.ts'
export { loadConfig, type LoadConfigOptions, readConfig } from './config/load-config.ts'
export { findSignInProblem } from './servers/connections/find-sign-in.ts'
export { withheldProxies } from './util/surroundings.ts'
export { findDownloads } from './config/fetched-program.ts'
export { ConfigFileError } from './config/problems.ts'
export type { LogLine } from './model/log-line.ts'
export { type GatewayOptions, type RunningGateway, startGateway } from './compose/gateway.ts'
export type { KeyRow } from './model/key-row.ts'
export type { Reload } from './model/reload.ts'
export type * from './model/rows.ts'
