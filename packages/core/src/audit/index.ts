// What the keepers and the verifiers of audits need: `@toolgate/core/audit`.
export {
  type CheckedAuditQuery,
  checkAuditQuery,
  checkCountQuery,
  eventOfOutcome,
  matchesAuditQuery,
  outcomeOfRecord,
} from './query.ts'
export { createOutcomeTally, type OutcomeTally } from './query.ts'
export {
  type HeldEntry,
  holdEntry,
  type RecordKeys,
  recordKeys,
  sealEntry,
  type SealOptions,
  SOLE_WRITER,
} from './record.ts'
export { type ChainEnd, createSealer, GENESIS, readLink, readSeq, type Sealer } from './chain.ts'
export {
  type Checkpoint,
  FIRST_CHECKPOINT,
  hashCheckpoint,
  newSigningKey,
  parseCheckpoint,
  parseSigningKey,
  parseVerifyingKey,
  signCheckpoint,
  type SigningKey,
  type UnsignedCheckpoint,
  type VerifyingKey,
} from './checkpoint.ts'
export { EMPTY_ROOT } from './merkle.ts'
export { createRecordTree, type RecordTree } from './merkle.ts'
export { checkProof, proveRecord, type RecordProof } from './checkpoint.ts'
export {
  AUDIT_FINDINGS,
  type AuditFinding,
  type AuditFindingKind,
  type AuditVerdict,
  type AuditVerdictStatus,
} from './verdict.ts'
export { type AuditVerifier, createVerifier, type VerifyOptions } from './verify.ts'
