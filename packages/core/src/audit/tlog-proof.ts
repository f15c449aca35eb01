import { canonicalize, isObject, readOwnJson } from '@toolgate/values/json'
import { hashRecord, readLink } from './chain.ts'
import { parseLeaf } from './leaf.ts'
import { type MerklePath, verifyConsistency, verifyInclusion } from './merkle-proof.ts'
import { countLeaves, isHash, placeOf } from './merkle.ts'
import { type NoteVerifier, openNote, type TreeHead } from './note.ts'
import { isCanonicalRecord } from './record.ts'

/** Links a record to a signed leaf of the log, through its chain. */
export interface RecordLink {
  /** The record as it is stored. */
  readonly record: string
  /** The concatenated hashes of up to 16 records: the record's entry in the tree of its chain. */
  readonly hashes: string
  /** The path from that entry to the `root` of the leaf. */
  readonly path: MerklePath
  /** The leaf, which is the entry in the log. */
  readonly leaf: string
}

/** The proof that a record is in a signed log of chains. */
export interface TlogProof extends RecordLink {
  /** The index of the leaf in the log, from 0. */
  readonly index: number
  /** The path from the leaf to the root of the log. */
  readonly logPath: MerklePath
  /** The signed tree head of the log. */
  readonly note: string
}

/** The first line of a proof. A file may have several. */
export const TLOG_PROOF = 'c2sp.org/tlog-proof@v1'

/**
 * Returns a proof for the leaf in the C2SP format `tlog-proof`. Its `extra` links the record to the leaf, as JSON: {@link
 * RecordLink}.
 */
export function formatTlogProof({ index, logPath, note, ...link }: TlogProof): string {
  const extra = Buffer.from(canonicalize(link)).toString('base64')
  return [TLOG_PROOF, `extra ${extra}`, `index ${index}`, ...logPath.map(toBase64), '', note].join('\n')
}

/** Parses a Toolgate proof without checking it; `undefined` for any other text. */
export function parseTlogProof(text: string): TlogProof | undefined {
  const end = text.indexOf('\n\n')
  const [first, extraLine = '', indexLine = '', ...steps] = text.slice(0, Math.max(0, end)).split('\n')
  const index = wordAfter('index ', indexLine)
  const link = parseLink(Buffer.from(extraLine.slice('extra '.length), 'base64').toString())
  const logPath = steps.map(fromBase64)
  const isProof = first === TLOG_PROOF && extraLine.startsWith('extra ') && logPath.every(isHash)
  if (!isProof || index === undefined || link === undefined) return undefined
  return { ...link, index, logPath, note: text.slice(end + 2) }
}

function parseLink(text: string): RecordLink | undefined {
  let value: unknown
  try {
    value = readOwnJson(text)
  } catch {
    return undefined
  }
  if (!isObject(value)) return undefined
  const { record, hashes, path, leaf } = value
  const isLink =
    [record, hashes, leaf].every((one) => typeof one === 'string') && Array.isArray(path) && path.every(isHash)
  return isLink ? (value as unknown as RecordLink) : undefined
}

/** Returns the problem of a proof; `undefined` if it is valid. */
export function checkTlogProof(proof: TlogProof, keys: readonly NoteVerifier[]): string | undefined {
  const { record, index, leaf: text, logPath, note } = proof
  const head = openNote(note, keys)
  if (head === undefined) return 'no trusted key signed the checkpoint'
  const entry = Buffer.from(text).toString('hex')
  if (!verifyInclusion({ entry, index, size: head.size, path: logPath, root: head.root }))
    return 'the leaf is not in the signed log'
  const leaf = parseLeaf(text)
  if (leaf === undefined || leaf.type === 'signed') return 'the leaf is not that of a chain'
  const link = readLink(record)
  if (!link || !isCanonicalRecord(record) || hashRecord(link.prev, link.hashed) !== link.hash)
    return 'the record was edited'
  const { seq, count = seq, root } = leaf
  const { leaf: of, at } = placeOf(link.seq - 1 - (seq - count))
  const isThere =
    proof.hashes.slice(at, at + link.hash.length) === link.hash &&
    verifyInclusion({ entry: proof.hashes, index: of, size: countLeaves(count), path: proof.path, root })
  return isThere ? undefined : 'the record is not in the chain that the leaf names'
}

/** The proof that a log continues an earlier one. */
export interface GrowthProof {
  readonly oldSize: number
  readonly path: MerklePath
  /** The signed tree head of the log. */
  readonly note: string
}

/** Returns a proof in the form that witnesses accept: the body of `add-checkpoint` of C2SP `tlog-witness`. */
export function formatGrowthProof({ oldSize, path, note }: GrowthProof): string {
  return [`old ${oldSize}`, ...path.map(toBase64), '', note].join('\n')
}

/** Parses a proof without checking it; `undefined` for any other text. */
export function parseGrowthProof(text: string): GrowthProof | undefined {
  const end = text.indexOf('\n\n')
  const [first = '', ...steps] = text.slice(0, Math.max(0, end)).split('\n')
  const oldSize = wordAfter('old ', first)
  const path = steps.map(fromBase64)
  return oldSize === undefined || !path.every(isHash) ? undefined : { oldSize, path, note: text.slice(end + 2) }
}

/** Returns the problem of a proof that a log continues `old`; `undefined` if it is valid. */
export function checkGrowthProof(
  { oldSize, path, note }: GrowthProof,
  old: TreeHead,
  keys: readonly NoteVerifier[],
): string | undefined {
  const head = openNote(note, keys)
  if (head === undefined) return 'no trusted key signed the checkpoint'
  if (head.origin !== old.origin) return 'it is about another log'
  if (oldSize !== old.size) return `it is from ${oldSize} leaves on, not from ${old.size}`
  const { size, root } = head
  return verifyConsistency({ oldSize, oldRoot: old.root, size, root, path })
    ? undefined
    : 'the log does not go on from the earlier checkpoint'
}

/** Returns the number after a word, if it is written in canonical form. */
function wordAfter(word: string, line: string): number | undefined {
  const text = line.startsWith(word) ? line.slice(word.length) : ''
  const number = Number(text)
  return Number.isSafeInteger(number) && number >= 0 && String(number) === text ? number : undefined
}

function toBase64(hash: string): string {
  return Buffer.from(hash, 'hex').toString('base64')
}

function fromBase64(text: string): string {
  return Buffer.from(text, 'base64').toString('hex')
}
