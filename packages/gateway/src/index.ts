export { findAuditProblems, openAudit } from './config/open-stores.ts'
export { compareConfigs, type ConfigComparison, configuredRules } from './admin/change/compare-configs.ts'
export { readCatalogFile } from './admin/change/catalog-file.ts'
export {
  parseSentTests,
  type PolicyTestFile,
  type PolicyTestFileOptions,
  readPolicyTests,
} from './admin/change/policy-tests.ts'
export { type FileResults, type MissedRow, type TestedClauseRow, toClauseRows, toRows } from './admin/change/test-rows.ts'
export { rulesOfChange } from './admin/change/rules-of-change.ts'
export type { GatewayConfig } from './config/config.ts'
export { loadConfig, type LoadConfigOptions, readConfig } from './config/load-config.ts'
export { ConfigFileError } from './config/problems.ts'
export type { LogLine } from './compose/gate-parts.ts'
export { type GatewayOptions, type RunningGateway, startGateway } from './compose/gateway.ts'
export type { KeyRow } from './auth/keys.ts'
export type { Reload } from './admin/reload/describe.ts'
export type * from './model/rows.ts'
