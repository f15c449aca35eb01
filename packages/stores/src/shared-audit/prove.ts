import { ConfigError, ToolgateError } from '@toolgate/core'
import { checkShape, shapeOf } from '@toolgate/values'
import {
  checkGrowthProof,
  checkTlogProof,
  consistencyParts,
  type ChainLeaf,
  countLeaves,
  createNoteVerifier,
  createPartRoots,
  type GrowthProof,
  inclusionParts,
  openNote,
  type PartRoots,
  parseLeaf,
  placeOf,
  readSeq,
  type RecordLink,
  type TlogProof,
  type TreeHead,
} from '@toolgate/core/audit'
import {
  type FoundRecord,
  type KeptChain,
  type KeptNote,
  type AuditSource,
  type SoughtRecords,
  toHex,
} from './source.ts'

const SOUGHT = shapeOf<{ call?: string; place?: number }>({ call: true, place: true })

export interface RecordProofs {
  readonly proofs: readonly TlogProof[]
  /** The number of these records that no checkpoint has signed yet. */
  readonly unsigned: number
}

/**
 * Returns the proofs of a call's records, or of one record, against the newest checkpoint. Each proof is checked before
 * it is returned.
 *
 * @throws {ToolgateError} `audit_invalid` if the audit was changed and therefore proves nothing
 */
export async function proveRecords(source: AuditSource, sought: SoughtRecords): Promise<RecordProofs> {
  checkShape('proveRecords', sought, SOUGHT)
  const { verifiers } = await source.readLog()
  const newest = await newestNote(source)
  const found = await source.find(sought)
  if (newest === undefined) return { proofs: [], unsigned: found.length }
  const links: { readonly link: RecordLink; readonly index: number }[] = []
  for (const one of found) {
    const leaf = await findLeaf(source, one, newest.size)
    if (leaf !== undefined) links.push({ index: leaf.index, link: await linkOf(source, one, leaf) })
  }
  const paths = links.map(({ index }) => createPartRoots(inclusionParts(newest.size, index)))
  await addLeaves(source, newest.size, paths)
  const keys = verifiers.map((key) => createNoteVerifier(key))
  const proofs = links.map(({ index, link }, i): TlogProof => {
    const proof = { ...link, index, logPath: paths[i]?.roots() ?? [], note: newest.note }
    const problem = checkTlogProof(proof, keys)
    if (problem !== undefined) throw changed(`Record ${readSeq(link.record)} of its chain cannot be proved: ${problem}`)
    return proof
  })
  return { proofs, unsigned: found.length - proofs.length }
}

/**
 * Returns the proof that the log extends an earlier checkpoint.
 *
 * @throws {ToolgateError} `audit_invalid` if it does not
 */
export async function proveGrowth(source: AuditSource, oldNote: string): Promise<GrowthProof> {
  const { verifiers } = await source.readLog()
  const keys = verifiers.map((key) => createNoteVerifier(key))
  const old = openNote(oldNote, keys)
  if (old === undefined) throw changed('The earlier checkpoint is not signed by a key of this log')
  const newest = await newestNote(source)
  if (newest === undefined || newest.size < old.size)
    throw changed(
      `The log was cut back: it has ${newest?.size ?? 0} leaves, and the earlier checkpoint signs ${old.size}`,
    )
  return proveFrom(source, { old, newest, keys })
}

async function proveFrom(
  source: AuditSource,
  { old, newest, keys }: { old: TreeHead; newest: KeptNote; keys: Parameters<typeof checkGrowthProof>[2] },
): Promise<GrowthProof> {
  const roots = createPartRoots(consistencyParts(newest.size, old.size))
  await addLeaves(source, newest.size, [roots])
  const proof = { oldSize: old.size, path: roots.roots(), note: newest.note }
  const problem = checkGrowthProof(proof, old, keys)
  if (problem !== undefined) throw changed(`The log is another one than that of the earlier checkpoint: ${problem}`)
  return proof
}

function changed(text: string): ToolgateError {
  return new ToolgateError('audit_invalid', `${text}.`)
}

async function newestNote(source: AuditSource): Promise<KeptNote | undefined> {
  let newest: KeptNote | undefined
  for await (const page of source.notes()) newest = page.at(-1)
  return newest
}

interface FoundLeaf {
  readonly index: number
  readonly text: string
  readonly leaf: ChainLeaf
}

/** Returns the first leaf that signs a record. */
async function findLeaf(
  source: AuditSource,
  { chain, text: record }: FoundRecord,
  size: number,
): Promise<FoundLeaf | undefined> {
  const seq = readSeq(record)
  const { replica, incarnation } = chain
  const needle = incarnation === undefined ? '' : `"incarnation":${JSON.stringify(incarnation)}`
  for await (const page of source.leaves(0, size))
    for (const { index, leaf: text } of page) {
      const leaf = text.includes(needle) ? parseLeaf(text) : undefined
      if (leaf === undefined || leaf.type === 'signed' || leaf.seq < seq) continue
      if (leaf.seq - (leaf.count ?? leaf.seq) >= seq) continue
      if (leaf.replica === replica && leaf.incarnation === incarnation) return { index, text, leaf }
    }
  return undefined
}

/** Returns the path from a record to the root of its chain in a leaf. */
async function linkOf(
  source: AuditSource,
  { chain, text: record }: FoundRecord,
  { text, leaf }: FoundLeaf,
): Promise<RecordLink> {
  const { replica, incarnation, prunedSeq = 0 } = chain
  const { seq, count = seq } = leaf
  const after = seq - count
  if (prunedSeq > after)
    throw new ConfigError(
      '',
      `the replica ${replica}, start ${incarnation} begins after record ${prunedSeq}: retention has removed hashes that a proof needs`,
    )
  const { leaf: own } = placeOf(readSeq(record) - 1 - after)
  const path = createPartRoots(inclusionParts(countLeaves(count), own))
  let hashes = ''
  for await (const { index, entry } of entriesOf(source, chain, { after, upTo: seq })) {
    path.add(entry)
    if (index === own) hashes = entry
  }
  return { record, hashes, path: path.roots(), leaf: text }
}

/** Yields the entries of the tree over a chain's records. */
async function* entriesOf(
  source: AuditSource,
  chain: KeptChain,
  { after, upTo }: { readonly after: number; readonly upTo: number },
) {
  let [at, entry] = [0, '']
  for await (const page of source.hashes(chain, after, upTo))
    for (const hash of page) {
      entry += hash
      at++
      if (placeOf(at).at !== 0) continue
      yield { index: placeOf(at - 1).leaf, entry }
      entry = ''
    }
  if (entry !== '') yield { index: placeOf(at - 1).leaf, entry }
}

async function addLeaves(source: AuditSource, size: number, roots: readonly PartRoots[]): Promise<void> {
  if (roots.length === 0) return
  for await (const page of source.leaves(0, size))
    for (const { leaf } of page) for (const one of roots) one.add(toHex(leaf))
}
