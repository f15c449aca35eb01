export {
  openPostgresStores,
  type OpenReplicas,
  type PostgresStores,
  type PostgresStoresOptions,
} from './postgres/open-stores.ts'
export { type PostgresDatabase, statement, type Statement } from './postgres/database.ts'
export type { Joined, JoinOptions } from './postgres/join.ts'
export type { Owned, PostgresOwners } from './postgres/owners.ts'
export type { PostgresReplicas, Replica, ReplicaRow, ReplicaWord, SharedPosition } from './postgres/replicas.ts'
export type { PostgresState } from './postgres/state.ts'
export { AUDIT_PROBLEMS, type AuditProblem } from './postgres/audit/audit-problem.ts'
export type { SharedAudit, SharedAuditOptions, SharedLogOptions } from './postgres/audit/open-audit.ts'
export type { WitnessOptions } from './postgres/audit/witness.ts'
export type { ChainVerdict, SharedVerdict, VerifySharedOptions } from './shared-audit/verify.ts'
