// `@toolgate/core/audit`: records, and the functions to store, read and verify them.

// Records, and the ports that write and read them
export type { MemoryAudit } from '../audit/memory.ts'
export {
  type AuditCounter,
  type AuditCountQuery,
  type AuditCounts,
  type AuditEntry,
  type AuditEvent,
  type AuditExporter,
  type AuditExportQuery,
  type AuditFilter,
  type AuditOutcome,
  type AuditQuery,
  type AuditReader,
  type AuditRecord,
  type AuditSink,
  type GateEvent,
  type PolicyDocument,
  type RunOfCall,
  TERMINAL_EVENTS,
} from '../ports/ports.ts'

// Queries
export {
  checkAuditQuery,
  checkCountQuery,
  type CheckedAuditQuery,
  createOutcomeTally,
  type OutcomeTally,
  eventOfOutcome,
  matchesAuditQuery,
  outcomeOfRecord,
} from '../audit/query.ts'

// Writing: records are sealed and chained
export { type ChainEnd, createSealer, GENESIS, readLink, readSeq, type Sealer } from '../audit/chain.ts'
export { hashOfText } from '../audit/facts.ts'
export { holdEntry, recordKeys, sealEntry, type SealOptions, SOLE_WRITER } from '../audit/record.ts'

// Inputs, sealed beside their records
export {
  type AuditInputs,
  type BoxedRecord,
  createInputOpener,
  type InputBoxes,
  type InputOpener,
  type OpenedInput,
  type SealedInputs,
} from '../audit/sealed-input.ts'

// Checkpoints and proofs
export {
  countLeaves,
  createMerkleTree,
  createRecordTree,
  EMPTY_ROOT,
  type MerkleTree,
  placeOf,
  type RecordTree,
  type RecordTreeState,
  type TreeState,
} from '../audit/merkle.ts'
export {
  consistencyParts,
  createPartRoots,
  inclusionParts,
  type MerklePath,
  type PartRoots,
  type TreePart,
  verifyConsistency,
} from '../audit/merkle-proof.ts'
export {
  createNoteSigner,
  createNoteVerifier,
  createWitnessVerifier,
  newSigningKey,
  type NoteSigner,
  type NoteVerifier,
  openNote,
  parseTreeHead,
  type TreeHead,
  type WitnessVerifier,
} from '../audit/note.ts'
export {
  checkGrowthProof,
  checkTlogProof,
  formatGrowthProof,
  formatTlogProof,
  type GrowthProof,
  parseGrowthProof,
  parseTlogProof,
  type RecordLink,
  TLOG_PROOF,
  type TlogProof,
} from '../audit/tlog-proof.ts'
export { type ChainLeaf, createLeaf, type Leaf, LEAF_TYPES, parseLeaf } from '../audit/leaf.ts'

// Verification
export {
  AUDIT_FINDINGS,
  type AuditFinding,
  type AuditVerdict,
  type AuditVerdictStatus,
  type InputsVerdict,
  worse,
} from '../audit/verdict.ts'
export type { SignedPoint } from '../audit/segments.ts'
export { type AuditVerifier, createVerifier } from '../audit/verify.ts'
