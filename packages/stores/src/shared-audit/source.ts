import { parseLeaf } from '@toolgate/core/audit'

/** Reads an audit of several replicas, in a database or exported, to verify it. Pages are in order. */
export interface SharedAuditSource {
  /** Returns what the log says of itself. It is asked first: what is read later is never behind it. */
  readLog(): Promise<KeptLog>
  notes(): AsyncIterable<readonly KeptNote[]>
  /** Returns the leaves from one index up to, without, another one. */
  leaves(from: number, to: number): AsyncIterable<readonly KeptLeaf[]>
  /** Returns the chains, in the order in which they joined. */
  chains(): Promise<readonly KeptChain[]>
  records(chain: KeptChain): AsyncIterable<readonly KeptRecord[]>
  /** Returns the sealed inputs of some records of a chain. */
  boxes(chain: KeptChain, seqs: readonly number[]): Promise<ReadonlyMap<number, string>>
  /** Returns the texts of records that say which sealed inputs were removed: at least the one of the latest time. */
  inputsRemoved(): Promise<readonly string[]>
  /** Returns the hashes of the records of a chain after one number up to another. */
  hashes(chain: KeptChain, after: number, upTo: number): AsyncIterable<readonly string[]>
  /** Returns the records of a call, or the one with a place in the order of all. */
  find(sought: SoughtRecords): Promise<readonly FoundRecord[]>
  /** The time at which it is read, or was exported. */
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
  /** The public keys of the notes, `name+id+key`. Whoever can change the audit can change them too. */
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
  readonly replica: string
  readonly incarnation: string
  /** The newest record. */
  readonly seq: number
  /** The newest record on the replica's own disk, when the database heard of it last. Absent where it does not write there first. */
  readonly onDisk?: number
  /** The last record that retention has removed or removes. Absent for none. */
  readonly prunedSeq?: number
}

export interface KeptRecord {
  readonly text: string
  /** What the place of the record says otherwise than the record. */
  readonly problem?: string | undefined
}

/** Whether a record has a sealed input. In JSON, the quotes of a field's name occur nowhere else. */
export function hasInput(text: string): boolean {
  return text.includes(',"input_box":"')
}

/** Returns the entry of a leaf in the tree. */
export function toHex(leaf: string): string {
  return Buffer.from(leaf).toString('hex')
}

/** Whether leaves that were added since the log had a size say that records may be removed. */
export async function isPrunedAfter(source: SharedAuditSource, size: number): Promise<boolean> {
  const now = await source.readLog()
  for await (const page of source.leaves(size, now.size))
    if (page.some(({ leaf }) => parseLeaf(leaf)?.type === 'pruned')) return true
  return false
}
