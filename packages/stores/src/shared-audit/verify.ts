import { type AuditFinding, type AuditVerdictStatus, type InputsVerdict } from '@toolgate/core/audit'
import { checkShape, shapeOf } from '@toolgate/values'
import { createFindings, inputsRemovedBefore } from '@toolgate/core/internal'
import { type ChainName, keyOf, readSignedLog } from './log.ts'
import { isPrunedAfter, type AuditSource } from './source.ts'
import { verifyChain } from './verify-chain.ts'

export interface VerifySharedOptions {
  /**
   * The trusted public keys of the log, `name+id+key`. Default: those in the database, which anyone who can change the
   * database can change too.
   */
  readonly verifiers?: readonly string[] | undefined
  /** The notes of a witness of the log. They reveal a log that its signer has rewritten. */
  readonly witness?: AsyncIterable<string> | undefined
  /** The maximum number of findings that are returned. All are counted. */
  readonly maxFindings?: number | undefined
}

const OPTIONS = shapeOf<VerifySharedOptions>({ verifiers: true, witness: true, maxFindings: true })

/** The result for one chain. */
export interface ChainVerdict {
  readonly replica: string
  readonly incarnation: string
  /** The state in the newest leaf; `new` without a leaf. `lost` is no alarm: the process ended without a notice. */
  readonly state: 'new' | 'live' | 'left' | 'lost'
  readonly lastSeq: number
  /** The number of the last record that a checkpoint has signed, or 0 for none. */
  readonly signedSeq: number
  /**
   * The minimum number of further records that are only on the replica's own disk, which ships them. They are lost if
   * the disk is lost. Absent if the replica does not write there first.
   */
  readonly unshipped?: number
  /** The last record that retention has removed, according to a signed leaf. Absent for none. */
  readonly prunedSeq?: number
}

export interface SharedVerdict {
  /** The worst status of all findings. */
  readonly status: AuditVerdictStatus
  readonly records: number
  readonly chains: readonly ChainVerdict[]
  readonly checkpoints: {
    readonly count: number
    readonly size: number
    readonly lastTs: string | undefined
    /** The trusted public keys. */
    readonly keys: readonly string[]
  }
  /** The number and the size of the notes that the witness has seen. Absent without a witness. */
  readonly witness?: { readonly count: number; readonly size: number }
  /** The state of the sealed inputs. Absent if no input is sealed. */
  readonly inputs?: InputsVerdict
  readonly findings: readonly AuditFinding[]
  readonly findingCount: number
}

/**
 * The maximum number of tries. Records are removed once an hour, and constantly added leaves must not prolong
 * verification.
 */
const TRIES = 5
/** Checkpoints are created every 10 s. If the latest is older than this, later records count as unsigned. */
const STALE_MS = 60_000

/**
 * Verifies the chains of all replicas against the log that signs them, while they are written.
 *
 * Finds and locates records that were edited, inserted, removed, reordered, cut off or rewritten, a removed chain, and
 * a removed log.
 */
export async function verifySharedAudit(
  source: AuditSource,
  options: VerifySharedOptions = {},
): Promise<SharedVerdict> {
  checkShape('verifySharedAudit', options, OPTIONS)
  // The notes are read before the log, so that they cannot be ahead of it.
  const witness = options.witness && (await Array.fromAsync(options.witness))
  for (let left = TRIES; ; left--) {
    const { size } = await source.readLog()
    const removed = Math.max(...(await removedTimes(source)))
    const verdict = await verifyOnce(source, { ...options, witness })
    // Records that are removed between the reads of the log and of the chains would count as missing.
    if (verdict.findingCount === 0 || left === 1) return verdict
    const hasLost = Math.max(...(await removedTimes(source))) > removed
    if (!hasLost && !(await isPrunedAfter(source, size))) return verdict
  }
}

interface VerifyOnce extends Omit<VerifySharedOptions, 'witness'> {
  readonly witness?: readonly string[] | undefined
}

async function verifyOnce(source: AuditSource, options: VerifyOnce): Promise<SharedVerdict> {
  const { maxFindings = 100 } = options
  const found = createFindings(maxFindings)
  const { report } = found
  // The order matters: later reads are never behind earlier ones.
  const log = await readSignedLog(source, { report, ...options })
  const chains: ChainVerdict[] = []
  let [records, unsigned, unkept] = [0, 0, 0]
  let inputs: InputsVerdict | undefined
  const removedBefore = Math.max(...(await removedTimes(source)))
  const seen = new Set<string>()
  for (const chain of await source.chains()) {
    const { replica = '', incarnation = '', seq: claimed } = chain
    const key = keyOf(chain)
    if (seen.has(key)) {
      report(located({ kind: 'inserted', text: 'The chain is there twice.' }, chain))
      continue
    }
    seen.add(key)
    const signed = log.chains.get(key)
    log.chains.delete(key)
    const points = signed?.points ?? []
    const prunedSeq = points.reduce((most, point) => Math.max(most, point.prunedSeq ?? 0), 0)
    const state = signed?.state ?? 'new'
    const signedSeq = points.at(-1)?.seq ?? 0
    if (prunedSeq > 0 && prunedSeq >= Math.max(claimed, signedSeq) && (await isEmpty(source.records(chain)))) {
      chains.push({ replica, incarnation, state, lastSeq: prunedSeq, signedSeq, prunedSeq })
      continue
    }
    const end = () => ({ inputsRemovedBefore: removedBefore })
    const verdict = await verifyChain(source, chain, { signed: points, maxFindings, end })
    inputs = addInputs(inputs, verdict.inputs)
    for (const finding of verdict.findings) report(located(finding, chain))
    unkept += verdict.findingCount - verdict.findings.length
    const { lastSeq } = verdict
    if (lastSeq < claimed && lastSeq >= signedSeq) report(located(cutShort(lastSeq, claimed), chain))
    records += verdict.records
    unsigned += Math.max(0, lastSeq - signedSeq)
    const unshipped = chain.onDisk !== undefined && { unshipped: Math.max(0, chain.onDisk - lastSeq) }
    const pruned = verdict.pruned && { prunedSeq: verdict.pruned.seq }
    chains.push({ replica, incarnation, state, lastSeq, signedSeq, ...unshipped, ...pruned })
  }
  for (const chain of log.chains.values()) {
    const seq = chain.points.at(-1)?.seq ?? 0
    if (seq === 0) continue
    const text = `The whole chain is missing: checkpoints have signed its records 1 to ${seq}.`
    report(located({ kind: 'truncated', seq: 1, text }, chain))
  }
  const late = staleText(log.lastTs, await source.nowMs())
  if (unsigned > 0 && late !== undefined)
    report({ kind: 'unsigned', text: `${late} ${unsigned} records are unsigned.` })
  const { count, size, lastTs, keys } = log
  const checkpoints = { count, size, lastTs, keys }
  const witnessed = log.witness && { witness: log.witness }
  const { status, findings } = found
  const findingCount = found.findingCount + unkept
  return { status, records, chains, checkpoints, ...witnessed, ...(inputs && { inputs }), findings, findingCount }
}

/**
 * Returns the times of removals. A removal is recorded in the chain of the replica that removed, and concerns all
 * chains.
 */
async function removedTimes(source: AuditSource): Promise<readonly number[]> {
  return (await source.inputsRemoved()).flatMap((text) => inputsRemovedBefore(text) ?? [])
}

function addInputs(one: InputsVerdict | undefined, other: InputsVerdict | undefined): InputsVerdict | undefined {
  if (one === undefined || other === undefined) return one ?? other
  return {
    present: one.present + other.present,
    gone: one.gone + other.gone,
    missing: one.missing + other.missing,
    altered: one.altered + other.altered,
  }
}

async function isEmpty(pages: AsyncIterable<readonly unknown[]>): Promise<boolean> {
  for await (const page of pages) if (page.length > 0) return false
  return true
}

function located(finding: AuditFinding, { replica = '', incarnation = '' }: ChainName): AuditFinding {
  return { ...finding, replica, incarnation, text: `Replica ${replica}, start ${incarnation}: ${finding.text}` }
}

function cutShort(lastSeq: number, claimed: number): AuditFinding {
  return {
    kind: 'truncated',
    seq: lastSeq + 1,
    text: `Records ${lastSeq + 1} to ${claimed} are missing at the end: the replica has written them.`,
  }
}

function staleText(lastTs: string | undefined, nowMs: number): string | undefined {
  if (lastTs === undefined) return 'No checkpoint was ever signed.'
  return nowMs - Date.parse(lastTs) > STALE_MS ? `No checkpoint was signed since ${lastTs}.` : undefined
}
