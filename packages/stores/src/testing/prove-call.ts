import { proveRecords, type RecordProofs, withAuditFile } from '../verify.ts'

/** Returns the proofs of a call in an audit in a file. */
export function proveCall(call: string, path: string): Promise<RecordProofs> {
  return withAuditFile({ path }, (source) => proveRecords(source, { call }))
}
