export { findAuditProblems, openAudit } from './stores.ts'
export { compareConfigs, type ConfigComparison, configuredRules } from './change/compare-configs.ts'
export { readCatalogFile } from './change/catalog-file.ts'
export {
  parseSentTests,
  type PolicyTestFile,
  type PolicyTestFileOptions,
  readPolicyTests,
} from './change/policy-tests.ts'
export { type FileResults, type MissedRow, type TestedClauseRow, toClauseRows, toRows } from './change/test-rows.ts'
export { rulesOfChange } from './change/rules-of-change.ts'
export type { GatewayConfig } from './config/config.ts'
export { loadConfig, type LoadConfigOptions, readConfig } from './config/load-config.ts'
export { ConfigFileError } from './config/problems.ts'
export type { LogLine } from './gate-parts.ts'
export { type GatewayOptions, type RunningGateway, startGateway } from './gateway.ts'
export type { KeyRow } from './auth/keys.ts'
export type { Reload } from './reload/describe.ts'
export type * from './api/wire.ts'
