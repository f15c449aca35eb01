import { setTimeout as delay } from 'node:timers/promises'
import {
  type AuditEntry,
  type AuditRecord,
  createRecordTree,
  parseLeaf,
  type RecordTreeState,
  type SignedPoint,
} from '@toolgate/core/audit'
import { parseRecord, pointOf } from '@toolgate/core/internal'
import { readOwnJson } from '@toolgate/values/json'
import { createOpenCalls, ENDS_OF_CALLS, type OpenCalls, ownEntry } from '../../own-records.ts'
import { aboutCalls, createComparison, unsafe } from '../../retention.ts'
import { numberIn, type Row, textIn } from '../../rows.ts'
import { type PostgresDatabase, type Statement, statement } from '../database.ts'
import type { PrunedChain } from './log-signer.ts'
import { areSigned } from './signed-leaves.ts'

interface SharedRetentionParts {
  readonly db: PostgresDatabase
  readonly retainMs: number
  readonly signer: {
    /** Returns the time of the database, if this process is the signer. */
    claim(): Promise<number | undefined>
    /** Signs that records may be removed. Returns whether it has signed. */
    prune(chain: PrunedChain): Promise<boolean>
  }
  /** The key with which this process signs. */
  readonly verifierKey: string
  readonly nowMs: () => number
  readonly isClosed: () => boolean
  /** Stores a record of the audit itself, durably. */
  readonly record: (entry: AuditEntry) => Promise<void>
}

/** The maximum number of records that are read or removed at once. */
const ROWS = 1000
/** The maximum number of leaves of a chain that are read at once. */
const LEAVES = 2000
/** The maximum number of leaves of chains that are compared with the log at once. */
const MAX_LEAVES = 20_000
/** The pause between removals, in milliseconds, so that the commits of calls do not wait for them. */
const PAUSE_MS = 10

/** A chain, and the point before which records may be removed. */
interface Chain {
  readonly id: number
  readonly replica: string
  readonly incarnation: string
  readonly isLive: boolean
  readonly prunedSeq: number
  readonly prunedTree: RecordTreeState | undefined
  readonly prunedLeaf: number
}

interface ComparedRecords {
  readonly points: readonly SignedPoint[]
  /** The calls that begin before that point and do not end before it. */
  readonly open: readonly AuditRecord[]
  /** The tree over all records of the chain up to there. */
  readonly tree: RecordTreeState
}

interface ChainRemoval {
  readonly chain: Chain
  readonly points: readonly SignedPoint[]
  /** The leaves that sign the points, by their index in the log. */
  readonly leaves: ReadonlyMap<number, string>
  /** The first leaf of the log that was not read. */
  readonly nextLeaf: number
}

/**
 * Removes the oldest records of the audit that replicas share, so that the others still verify. Only the process that
 * signs the log does it.
 *
 * Records are removed up to where a checkpoint has signed their chain, after both the records and the log were compared
 * with it. A record and then a signed leaf of the log announce the removal; only then are the records removed. After a
 * crash at any point, the next round continues.
 */
export class SharedRetention {
  readonly #parts: SharedRetentionParts
  readonly #sql: ReturnType<typeof statementsFor>

  constructor(parts: SharedRetentionParts) {
    this.#parts = parts
    this.#sql = statementsFor(parts.db.schema)
  }

  /** Runs one round. @throws if records differ from the signed ones; everything that was not removed still verifies */
  async round(): Promise<void> {
    const nowMs = await this.#parts.signer.claim()
    if (nowMs === undefined) return
    for (const rest of await this.#query(this.#sql.rests))
      await this.#remove(numberIn(rest, 'id'), numberIn(rest, 'pruned_seq'))
    const untilMs = nowMs - this.#parts.retainMs
    for (let left = (await this.#query(this.#sql.chains)).map(toChain); left.length > 0 && !this.#parts.isClosed();) {
      const plans: ChainRemoval[] = []
      for (let leaves = 0; left.length > 0 && leaves < MAX_LEAVES; left = left.slice(1)) {
        const plan = left[0] && (await this.#plan(left[0], untilMs))
        if (plan !== undefined) plans.push(plan)
        leaves += plan?.leaves.size ?? 0
      }
      const leaves = new Map(plans.flatMap((plan) => [...plan.leaves]))
      // Otherwise anyone who can write to the database could have recent records removed, and hide it.
      if (leaves.size === 0 || !(await areSigned(this.#parts.db, this.#parts.verifierKey, leaves))) return
      for (const plan of plans) {
        if (this.#parts.isClosed() || !(await this.#prune(plan))) continue
        left = [...left, ...(await this.#query(this.#sql.chain, [plan.chain.id])).map(toChain)]
      }
    }
  }

  /** Returns whether there may be more to remove of the chain. */
  async #prune(plan: ChainRemoval): Promise<boolean> {
    const { signer, record, nowMs } = this.#parts
    const { chain } = plan
    const checked = await this.#compare(chain, plan.points)
    const voucher = checked?.points.at(-1)
    if (checked === undefined || voucher === undefined) return false
    const { replica, incarnation } = chain
    const which = `records ${chain.prunedSeq + 1} to ${voucher.seq} of the replica ${replica}, start ${incarnation}`
    const detail = `${which}, signed by the checkpoint of ${voucher.ts}${aboutCalls(checked.open)}`
    await record(ownEntry('audit_pruned', nowMs(), { reason: 'retention', detail }))
    const isAll = checked.points.length === plan.points.length
    const { seq, headHash: head, merkleRoot: root } = voucher
    const nextLeaf = isAll ? plan.nextLeaf : chain.prunedLeaf
    if (!(await signer.prune({ id: chain.id, replica, incarnation, seq, head, root, tree: checked.tree, nextLeaf })))
      return false
    await this.#remove(chain.id, seq)
    return isAll
  }

  /** Returns the points before a time at which checkpoints have signed a chain. */
  async #plan(chain: Chain, untilMs: number): Promise<ChainRemoval | undefined> {
    const { id, prunedSeq, prunedLeaf, replica, incarnation } = chain
    const points: SignedPoint[] = []
    const leaves = new Map<number, string>()
    let nextLeaf = prunedLeaf
    const rows = await this.#query(this.#sql.leaves, [id, prunedLeaf, LEAVES])
    for (const row of rows) {
      const [index, text] = [numberIn(row, 'index'), textIn(row, 'leaf')]
      const leaf = parseLeaf(text)
      const isOfChain = leaf?.type !== 'signed' && leaf?.replica === replica && leaf.incarnation === incarnation
      if (leaf === undefined || !isOfChain) throw unsafe(`leaf ${index} of the log is not about its chain`)
      if (Date.parse(leaf.ts) > untilMs) break
      nextLeaf = index + 1
      leaves.set(index, text)
      if (leaf.seq > (points.at(-1)?.seq ?? prunedSeq)) points.push(pointOf(leaf))
    }
    return points.length === 0 ? undefined : { chain, points, leaves, nextLeaf }
  }

  /**
   * Compares records with checkpoints. Returns the records before the first running call, and the tree over them, or
   * `undefined` if this process closes meanwhile.
   *
   * @throws if the records differ from the signed ones
   */
  async #compare(chain: Chain, points: readonly SignedPoint[]): Promise<ComparedRecords | undefined> {
    const last = points.at(-1)?.seq ?? 0
    const calls = createOpenCalls<AuditRecord>()
    const tree = createRecordTree(chain.prunedTree)
    const checked = createComparison(points, tree)
    for (let after = chain.prunedSeq; after < last;) {
      if (this.#parts.isClosed()) return undefined
      const rows = await this.#query(this.#sql.records, [chain.id, after, last, ROWS])
      for (const row of rows) {
        const text = textIn(row, 'record')
        checked.add(text)
        const record = parseRecord(text)
        if (record !== undefined) calls.note(record)
      }
      if (rows.length === 0) break
      after = numberIn(rows.at(-1) ?? {}, 'seq')
    }
    checked.finish()
    const running = chain.isLive ? await this.#firstRunning(chain, calls, last) : undefined
    if (running === undefined) return { points, open: calls.list(), tree: tree.state }
    const before = points.filter(({ seq }) => seq < running)
    return before.length === 0 ? undefined : this.#compare({ ...chain, isLive: false }, before)
  }

  /** Returns the number of the first record of a call that began up to a record and has not ended. */
  async #firstRunning({ id }: Chain, calls: OpenCalls<AuditRecord>, last: number): Promise<number | undefined> {
    for (const { seq, tool_call_id: call = '' } of calls.list().toSorted((a, b) => a.seq - b.seq)) {
      const ends = await this.#query(this.#sql.ends, [
        id,
        last,
        `"tool_call_id":${JSON.stringify(call)}`,
        [...ENDS_OF_CALLS],
      ])
      if (ends.length === 0) return seq
    }
    return undefined
  }

  async #remove(chain: number, upTo: number): Promise<void> {
    const [first] = await this.#query(this.#sql.first, [chain])
    if (first === undefined) return
    for (let from = numberIn(first, 'seq'); from <= upTo && !this.#parts.isClosed(); from += ROWS) {
      await this.#query(this.#sql.remove, [chain, from, Math.min(from + ROWS - 1, upTo)])
      await delay(PAUSE_MS)
    }
  }

  #query(of: Statement, values: readonly unknown[] = []): Promise<readonly Row[]> {
    return this.#parts.db.query(of, values)
  }
}

function toChain(row: Row): Chain {
  const tree = row['pruned_tree']
  return {
    id: numberIn(row, 'id'),
    replica: textIn(row, 'replica'),
    incarnation: textIn(row, 'incarnation'),
    isLive: row['status'] === 'live',
    prunedSeq: numberIn(row, 'pruned_seq'),
    prunedTree: typeof tree === 'string' ? (readOwnJson(tree) as RecordTreeState) : undefined,
    prunedLeaf: numberIn(row, 'pruned_leaf'),
  }
}

function statementsFor(schema: string) {
  const columns = 'id, replica, incarnation, status, pruned_seq, pruned_tree, pruned_leaf'
  return {
    chains: statement(`SELECT ${columns} FROM ${schema}.audit_chains WHERE leaf_seq > pruned_seq ORDER BY id`),
    chain: statement(`SELECT ${columns} FROM ${schema}.audit_chains WHERE id = $1`),
    rests: statement(`
      SELECT id, pruned_seq FROM ${schema}.audit_chains AS chains WHERE pruned_seq > 0
        AND EXISTS (SELECT FROM ${schema}.audit WHERE chain = chains.id AND seq <= chains.pruned_seq)`),
    leaves: statement(
      `SELECT index, leaf FROM ${schema}.audit_leaves WHERE chain = $1 AND index >= $2 ORDER BY index LIMIT $3`,
    ),
    records: statement(
      `SELECT seq, record FROM ${schema}.audit WHERE chain = $1 AND seq > $2 AND seq <= $3 ORDER BY seq LIMIT $4`,
    ),
    ends: statement(`
      SELECT seq FROM ${schema}.audit WHERE chain = $1 AND seq > $2 AND event = ANY ($4::text[]) AND strpos(record, $3) > 0
      ORDER BY seq LIMIT 1`),
    first: statement(`SELECT seq FROM ${schema}.audit WHERE chain = $1 AND seq > 0 ORDER BY seq LIMIT 1`),
    remove: statement(`
      WITH inputs AS (DELETE FROM ${schema}.audit_inputs WHERE chain = $1 AND seq >= $2 AND seq <= $3)
      DELETE FROM ${schema}.audit WHERE chain = $1 AND seq >= $2 AND seq <= $3`),
  }
}
