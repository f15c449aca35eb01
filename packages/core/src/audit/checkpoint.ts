import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
  verify,
} from 'node:crypto'
import { ConfigError, sha256Hex } from '@toolgate/values'
import { canonicalize, isObject, readOwnJson } from '@toolgate/values/json'
import { GENESIS, hashRecord, readLink } from './chain.ts'
import { countLeaves, isHash, placeOf, toLeaves } from './merkle.ts'
import { inclusionPath, verifyInclusion } from './merkle-proof.ts'
import { isCanonicalRecord } from './record.ts'

/** Separates our signatures and hashes from those of other data. */
const DOMAIN = 'toolgate.checkpoint.v1\0'

/** The `prevCheckpoint` of the first checkpoint. */
export const FIRST_CHECKPOINT: string = GENESIS

/**
 * The signed state of an audit at one moment. If a copy is kept elsewhere, it reveals that the end was cut off or
 * everything was rewritten, which a chain alone does not.
 *
 * Fields are in alphabetical order, so that `JSON.stringify` returns the RFC 8785 form.
 */
export interface Checkpoint {
  /** How many records it signs: those after the previous checkpoint, up to `seq`. */
  readonly count: number
  /** The `seq` of the `audit_opened` record of the process that signed. */
  readonly epoch: number
  /** The `hash` of the record with the number `seq`. */
  readonly headHash: string
  /** The first 16 hex digits of the SHA-256 of the public key (SPKI, DER). */
  readonly keyId: string
  /** The RFC 6962 root. Each entry holds the `hash`es, 32 bytes each, of 16 records; the last entry may have fewer. */
  readonly merkleRoot: string
  /** Hash of the previous checkpoint. */
  readonly prevCheckpoint: string
  /** Retention may have removed records up to this number, which earlier checkpoints signed. Absent if there are none. */
  readonly prunedSeq?: number
  readonly seq: number
  /** Ed25519 over `toolgate.checkpoint.v1`, a NUL, and the RFC 8785 form without this field; base64url. */
  readonly sig: string
  /** RFC 3339, UTC, milliseconds. */
  readonly ts: string
  /** The name of the audit, for collections of checkpoints of several audits. */
  readonly writer: string
}

type UnsignedCheckpoint = Omit<Checkpoint, 'keyId' | 'sig'>

export interface SigningKey {
  readonly keyId: string
  /** PEM, SPKI. A verifier should not take it from the folder of the checkpoints. */
  readonly publicKey: string
  sign(text: string): string
}

export interface VerifyingKey {
  readonly keyId: string
  verifies(text: string, signature: string): boolean
}

/** Returns a new Ed25519 private key, PEM, PKCS #8. */
export function newSigningKey(): string {
  return generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
}

/** Parses a private key. @throws {ConfigError} for anything but an Ed25519 private key in PEM */
export function parseSigningKey(pem: string): SigningKey {
  const key = readKey(() => createPrivateKey(pem), 'private')
  const publicKey = createPublicKey(key)
  return {
    keyId: keyIdOf(publicKey),
    publicKey: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
    sign: (text) => sign(null, Buffer.from(DOMAIN + text), key).toString('base64url'),
  }
}

/** Parses a public key. @throws {ConfigError} for anything but an Ed25519 key in PEM */
export function parseVerifyingKey(pem: string): VerifyingKey {
  const key = readKey(() => createPublicKey(pem), 'public')
  return {
    keyId: keyIdOf(key),
    verifies: (text, signature) => verify(null, Buffer.from(DOMAIN + text), key, Buffer.from(signature, 'base64url')),
  }
}

/** Signs a checkpoint and returns its line. */
export function signCheckpoint(checkpoint: UnsignedCheckpoint, key: SigningKey): string {
  const signed = { ...checkpoint, keyId: key.keyId }
  return canonicalize({ ...signed, sig: key.sign(canonicalize(signed)) })
}

/** Returns the hash that links the next checkpoint to this one. */
export function hashCheckpoint(line: string): string {
  return sha256Hex(DOMAIN + line)
}

/** Parses the line of a checkpoint, without checking its signature; `undefined` for anything else. */
export function parseCheckpoint(line: string): Checkpoint | undefined {
  try {
    const value: unknown = readOwnJson(line)
    return isCheckpoint(value) && canonicalize(value) === line ? value : undefined
  } catch {
    return undefined
  }
}

/** Returns whether a checkpoint was signed with the key that it names, which must be one of `keys`. */
export function isSigned({ sig, ...signed }: Checkpoint, keys: ReadonlyMap<string, VerifyingKey>): boolean {
  return keys.get(signed.keyId)?.verifies(canonicalize(signed), sig) === true
}

function isCheckpoint(value: unknown): value is Checkpoint {
  if (!isObject(value)) return false
  const { count, epoch, headHash, keyId, merkleRoot, prevCheckpoint, prunedSeq = 0, seq, sig, ts, writer } = value
  return (
    isCount(count) &&
    isCount(epoch) &&
    isCount(seq) &&
    isCount(prunedSeq) &&
    [headHash, merkleRoot, prevCheckpoint].every(isHash) &&
    [keyId, sig, ts, writer].every((text) => typeof text === 'string') &&
    count <= seq &&
    prunedSeq <= seq
  )
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}

function readKey(read: () => KeyObject, kind: 'private' | 'public'): KeyObject {
  let key: KeyObject
  try {
    key = read()
  } catch (cause) {
    throw new ConfigError('', `the checkpoint key is not a ${kind} key in PEM`, { cause })
  }
  if (key.asymmetricKeyType !== 'ed25519')
    throw new ConfigError('', `the checkpoint key is of type ${key.asymmetricKeyType}; it must be ed25519`)
  return key
}

function keyIdOf(publicKey: KeyObject): string {
  return createHash('sha256')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest('hex')
    .slice(0, 16)
}

/** Proves that a record was in the audit when a checkpoint was signed, without showing other records. Plain JSON. */
export interface RecordProof {
  /** The record as it is stored. */
  readonly record: string
  /** The line of the checkpoint. */
  readonly checkpoint: string
  /** The index of the record in the checkpoint, from 0. */
  readonly index: number
  /** The leaf with the record: the concatenated hashes of up to 16 records. */
  readonly leaf: string
  /** The roots beside its path in the tree, the lowest first. */
  readonly path: readonly string[]
}

/** Returns the proof of a record. `hashes` are those of all records of the checkpoint, in order. */
export function proveRecord(record: string, checkpoint: string, hashes: readonly string[]): RecordProof {
  const index = hashes.indexOf(readLink(record)?.hash ?? '')
  const leaves = toLeaves(hashes)
  const { leaf } = placeOf(index)
  return { record, checkpoint, index, leaf: leaves[leaf] ?? '', path: inclusionPath(leaves, leaf) }
}

/** Returns the problem of a proof; `undefined` if it is valid. */
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
