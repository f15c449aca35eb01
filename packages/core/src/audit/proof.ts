import { hashRecord, readLink } from './chain.ts'
import { isSigned, parseCheckpoint, type VerifyingKey } from './checkpoint.ts'
import { isCanonicalRecord } from './canonical-record.ts'
import { inclusionPath, verifyInclusion } from './merkle.ts'
import { countLeaves, placeOf, toLeaves } from './record-tree.ts'

/** What proves that one record was in the audit when a checkpoint was signed, without showing another. Plain JSON. */
export interface RecordProof {
  /** The record as it is stored. */
  readonly record: string
  /** The line of the checkpoint. */
  readonly checkpoint: string
  /** Which of the checkpoint's records it is, counted from 0. */
  readonly index: number
  /** The leaf it is in: the hashes of up to 16 records, one after the other. */
  readonly leaf: string
  /** The roots beside its path in the tree, the lowest first. */
  readonly path: readonly string[]
}

/** Gives the proof of a record. `hashes` are those of all records of the checkpoint, in their order. */
export function proveRecord(record: string, checkpoint: string, hashes: readonly string[]): RecordProof {
  const index = hashes.indexOf(readLink(record)?.hash ?? '')
  const leaves = toLeaves(hashes)
  const { leaf } = placeOf(index)
  return { record, checkpoint, index, leaf: leaves[leaf] ?? '', path: inclusionPath(leaves, leaf) }
}

/** Says what is wrong with a proof; `undefined` where nothing is. */
export function checkProof(proof: RecordProof, keys: readonly VerifyingKey[]): string | undefined {
  const { record, index, leaf: entry, path } = proof
  const checkpoint = parseCheckpoint(proof.checkpoint)
  if (!checkpoint) return 'the checkpoint cannot be read'
  if (!isSigned(checkpoint, new Map(keys.map((key) => [key.keyId, key])))) return 'no trusted key signed the checkpoint'
  const link = readLink(record)
  if (!link || !isCanonicalRecord(record) || hashRecord(link.prev, link.hashed) !== link.hash)
    return 'the record was edited'
  const { seq, count, merkleRoot: root } = checkpoint
  if (link.seq !== seq - count + 1 + index) return 'the record has another number'
  const { leaf, at } = placeOf(index)
  const isThere =
    entry.slice(at, at + link.hash.length) === link.hash &&
    verifyInclusion({ entry, index: leaf, size: countLeaves(count), path, root })
  return isThere ? undefined : 'the record is not in the tree'
}
