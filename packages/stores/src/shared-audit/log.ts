import {
  type AuditFinding,
  createMerkleTree,
  createNoteVerifier,
  type NoteVerifier,
  openNote,
  parseLeaf,
  type SignedPoint,
  type TreeHead,
} from '@toolgate/core/audit'
import { pointOf } from '@toolgate/core/internal'
import { type KeptLeaf, type AuditSource, toHex } from './source.ts'

/** The points at which checkpoints signed a chain. */
interface SignedChain {
  readonly replica: string | undefined
  readonly incarnation: string | undefined
  /** The state in the newest leaf. */
  state: 'live' | 'left' | 'lost'
  readonly points: SignedPoint[]
}

interface SignedLog {
  /** The number of checkpoints with a trusted signature. */
  readonly count: number
  readonly size: number
  readonly lastTs: string | undefined
  readonly chains: Map<string, SignedChain>
  /** The trusted public keys. */
  readonly keys: readonly string[]
  /** The number and the size of the notes that the witness has seen. Absent without a witness. */
  readonly witness?: { readonly count: number; readonly size: number }
}

interface ReadSignedLog {
  readonly report: (finding: AuditFinding) => void
  /** The trusted public keys. Default: the keys that the log names. */
  readonly verifiers?: readonly string[] | undefined
  /** The notes of a witness. */
  readonly witness?: readonly string[] | undefined
}

/** A signed tree head, of the log or of its witness. */
interface LogHead extends TreeHead {
  /** The checkpoint's number, counted from 1. */
  readonly checkpoint: number
  readonly isWitnessed: boolean
}

/** Reads the signed leaves, and checks every signature and every root. */
export async function readSignedLog(
  source: AuditSource,
  { report, verifiers, witness: witnessed }: ReadSignedLog,
): Promise<SignedLog> {
  const kept = await source.readLog()
  const keys = verifiers ?? kept.verifiers
  const trusted = keys.map((key) => createNoteVerifier(key))
  const own = await openNotes(source.notes(), { trusted, report, isWitnessed: false })
  const seen = await openNotes([witnessed?.map((note) => ({ note })) ?? []], { trusted, report, isWitnessed: true })
  const newest = own.at(-1)?.size ?? 0
  const leaves = createLeafReader([...own, ...seen], report)
  for await (const page of source.leaves(0, newest)) for (const leaf of page) leaves.add(leaf)
  leaves.finish(newest)
  if (kept.size > newest)
    report({ kind: 'truncated', text: `The newest checkpoints are missing: the log had ${kept.size} leaves.` })
  if (witnessed?.length === 0) report({ kind: 'unsigned', text: 'The witness has no checkpoint.' })
  const { size, lastTs, chains } = leaves
  const log = { count: own.length, size, lastTs, chains, keys }
  return witnessed === undefined ? log : { ...log, witness: { count: seen.length, size: seen.at(-1)?.size ?? 0 } }
}

interface OpenNotes extends Pick<LogHead, 'isWitnessed'>, Pick<ReadSignedLog, 'report'> {
  readonly trusted: readonly NoteVerifier[]
}

/** A note, and the size of the log where it is kept. */
type PlacedNote = { readonly note: string; readonly size?: number }

/** Returns the heads of validly signed notes, sorted by size. Reports the other notes. */
async function openNotes(
  pages: AsyncIterable<readonly PlacedNote[]> | Iterable<readonly PlacedNote[]>,
  { trusted, report, isWitnessed }: OpenNotes,
): Promise<readonly LogHead[]> {
  const heads: LogHead[] = []
  let checkpoint = 0
  for await (const page of pages)
    for (const { note, size } of page) {
      checkpoint++
      const head = openNote(note, trusted)
      const isOurs = head !== undefined && trusted.some(({ name }) => name === head.origin)
      const isInPlace = isWitnessed || (head?.size === size && (head?.size ?? 0) > (heads.at(-1)?.size ?? 0))
      if (isOurs && isInPlace) heads.push({ ...head, checkpoint, isWitnessed })
      else {
        const problem = isOurs ? 'does not go on from the one before it' : 'is not signed by a trusted key'
        const which = `Checkpoint ${checkpoint}${isWitnessed ? ' of the witness' : ''}`
        report({ kind: 'forged', checkpoint, text: `${which} ${problem}.` })
      }
    }
  return heads.toSorted((a, b) => a.size - b.size)
}

/** Builds the tree of the log, compares it with heads, and collects the leaves' statements about chains. */
function createLeafReader(heads: readonly LogHead[], report: ReadSignedLog['report']) {
  const tree = createMerkleTree()
  const chains = new Map<string, SignedChain>()
  const sorted = heads.toSorted((a, b) => a.size - b.size)
  /** The tree at the last matching head. After the first difference, all later ones differ too. */
  const log = { size: 0, ts: '', isBroken: false }
  const witness = { size: 0, ts: '', isBroken: false }
  let lastTs: string | undefined
  let at = 0

  function compare(head: LogHead): void {
    const agreed = head.isWitnessed ? witness : log
    if (agreed.isBroken) return
    const { size, checkpoint } = head
    if (size === tree.size && head.root === tree.root()) {
      Object.assign(agreed, { size, ts: lastTs ?? '' })
      return
    }
    agreed.isBroken = true
    const which = `Leaves ${agreed.size} to ${size - 1} of the log${agreed.ts && `, added after ${agreed.ts},`}`
    if (head.isWitnessed)
      report({
        kind: 'forked',
        checkpoint,
        text: `${which} are not those that the witness saw at its checkpoint ${checkpoint}.`,
      })
    else
      report({
        kind: 'rewritten',
        checkpoint,
        text: `${which} are not those that checkpoint ${checkpoint} has signed.`,
      })
  }

  function compareAll(): void {
    for (let head = sorted[at]; head !== undefined && head.size <= tree.size; head = sorted[++at]) compare(head)
  }

  return {
    chains,
    get size() {
      return tree.size
    },
    get lastTs() {
      return lastTs
    },
    add({ index, leaf }: KeptLeaf): void {
      compareAll()
      if (index !== tree.size && !log.isBroken) {
        log.isBroken = witness.isBroken = true
        report({ kind: 'missing', text: `Leaves ${tree.size} to ${index - 1} of the log are missing.` })
      }
      tree.add(toHex(leaf))
      lastTs = addLeaf(leaf, chains) ?? lastTs
    },
    /** Finishes the comparison. `newest`: the size that the newest checkpoint of the log signs. */
    finish(newest: number): void {
      compareAll()
      if (tree.size < newest && !log.isBroken)
        report({ kind: 'truncated', text: `Leaves ${tree.size} to ${newest - 1} are missing at the end of the log.` })
      const ahead = sorted.findLast(({ isWitnessed }) => isWitnessed)
      if (ahead === undefined || ahead.size <= Math.max(tree.size, newest)) return
      const { checkpoint, size } = ahead
      const text = `The log was cut back to ${tree.size} leaves: its witness saw ${size} at its checkpoint ${checkpoint}.`
      report({ kind: 'truncated', checkpoint, text })
    },
  }
}

/** Applies a leaf to the chains. Returns its time. */
function addLeaf(text: string, chains: Map<string, SignedChain>): string | undefined {
  const leaf = parseLeaf(text)
  if (leaf === undefined || leaf.type === 'signed') return leaf?.ts
  const { type, replica, incarnation, seq, ts } = leaf
  const key = keyOf({ replica, incarnation })
  const chain = chains.get(key) ?? { replica, incarnation, state: 'live', points: [] }
  chains.set(key, chain)
  const newest = chain.points.at(-1)
  if (type === 'pruned') {
    if (newest !== undefined) chain.points[chain.points.length - 1] = { ...newest, prunedSeq: seq }
    return ts
  }
  chain.state = type === 'joined' ? 'live' : type
  if (seq > 0) chain.points.push(pointOf(leaf))
  return ts
}

/** Returns the key of a chain in maps. */
export function keyOf({ replica, incarnation }: ChainName): string {
  return JSON.stringify([replica, incarnation])
}

/** The writer of a chain. Both parts are absent in an audit without replicas. */
export type ChainName = { readonly replica?: string | undefined; readonly incarnation?: string | undefined }
