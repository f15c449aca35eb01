import { createMerkleTree, type MerkleTree, parseLeaf, type TreeState } from '@toolgate/core/audit'

/** Reads an audit, from a database, an export or its own file, to verify it. Pages are in order. */
export interface AuditSource {
  /** Returns the log's own data. It is read first, so that later reads are never behind it. */
  readLog(): Promise<KeptLog>
  notes(): AsyncIterable<readonly KeptNote[]>
  /** Yields the leaves with indexes from `from` up to, but not including, `to`. */
  leaves(from: number, to: number): AsyncIterable<readonly KeptLeaf[]>
  /** Returns the chains, in the order in which they joined. */
  chains(): Promise<readonly KeptChain[]>
  records(chain: KeptChain): AsyncIterable<readonly KeptRecord[]>
  /** Returns the sealed inputs of these records of a chain. */
  boxes(chain: KeptChain, seqs: readonly number[]): Promise<ReadonlyMap<number, string>>
  /** Returns records that say which sealed inputs were removed, including the record with the latest time. */
  inputsRemoved(): Promise<readonly string[]>
  /** Yields the hashes of a chain's records from number `after + 1` to number `upTo`. */
  hashes(chain: KeptChain, after: number, upTo: number): AsyncIterable<readonly string[]>
  /** Returns the records of a call, or the record at a position in the whole audit. */
  find(sought: SoughtRecords): Promise<readonly FoundRecord[]>
  /** Returns the current time, or the time of the export. */
  nowMs(): Promise<number>
}

export type SoughtRecords = { readonly call: string } | { readonly place: number }

export interface FoundRecord {
  readonly chain: KeptChain
  readonly text: string
}

export interface KeptLog {
  /** The number of leaves. */
  readonly size: number
  /** The public keys of the notes, `name+id+key`. Anyone who can change the audit can change them too. */
  readonly verifiers: readonly string[]
}

export interface KeptNote {
  readonly size: number
  /** A signed `tlog-checkpoint`. */
  readonly note: string
}

export interface KeptLeaf {
  readonly index: number
  readonly leaf: string
}

export interface KeptChain {
  readonly id: number
  /** The replica, and its start, that writes the chain. Both are absent in an audit without replicas. */
  readonly replica?: string
  readonly incarnation?: string
  /** The number of the newest record. */
  readonly seq: number
  /**
   * The number of the newest record on the replica's own disk, as last reported to the database. Absent if the replica
   * does not write there first.
   */
  readonly onDisk?: number
  /** The number of the last record that retention has removed or is removing. Absent for none. */
  readonly prunedSeq?: number
}

export interface KeptRecord {
  readonly text: string
  /** How the stored position of the record contradicts the record. */
  readonly problem?: string | undefined
}

/** Whether a record has a sealed input. A quoted field name occurs nowhere else in JSON. */
export function hasInput(text: string): boolean {
  return text.includes(',"input_box":"')
}

/** Returns a log after further leaves. */
export function extendLog(from: TreeState | undefined, leaves: readonly string[]): MerkleTree {
  const tree = createMerkleTree(from)
  for (const leaf of leaves) tree.add(toHex(leaf))
  return tree
}

/** Returns the tree's entry for a leaf. */
export function toHex(leaf: string): string {
  return Buffer.from(leaf).toString('hex')
}

/** Whether leaves after a size of the log say that records may be removed. */
export async function isPrunedAfter(source: AuditSource, size: number): Promise<boolean> {
  const now = await source.readLog()
  for await (const page of source.leaves(size, now.size))
    if (page.some(({ leaf }) => parseLeaf(leaf)?.type === 'pruned')) return true
  return false
}
