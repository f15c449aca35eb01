import { createLeaf, type Leaf, type NoteSigner, type RecordTreeState } from '@toolgate/core/audit'
import { messageOf } from '@toolgate/values'
import { numberIn, type Row, textIn } from '../../rows.ts'
import { extendLog } from '../../shared-audit/source.ts'
import { type PostgresDatabase, type Statement, statement } from '../database.ts'

interface LogSignerOptions {
  readonly db: PostgresDatabase
  /** The chain of this process, which is kept live. */
  readonly chain: number
  /** The name of this process among the possible signers. */
  readonly name: string
  /** The name of the log. */
  readonly origin: string
  readonly signer: NoteSigner
  readonly everyMs: number
  /** Called for chains whose process is gone, before they are signed as lost. */
  readonly onLost: (chain: number) => Promise<void>
  readonly onFault: (error: unknown) => void
  /** Called and awaited after each round. Never rejects. */
  readonly afterRound: (hasSigned: boolean) => Promise<void>
}

/** If a chain shows no sign of life for this many checkpoints, it counts as lost. */
const LOST_AFTER = 3
/**
 * How long a silent chain on a replica's own disk is not yet lost. It may return, and then reports how its calls ended.
 */
const DISK_RETURNS = '1 day'
/** The maximum number of leaves of one checkpoint. The next one signs the others. */
const MAX_CHAINS = 5000

/**
 * Signs the log of all chains. One process signs at a time: the holder of the lease. A process without the lease cannot
 * add to the log, because each addition names the expected size and signer.
 */
export class LogSigner {
  readonly #options: LogSignerOptions
  readonly #sql: ReturnType<typeof statementsFor>
  #timer: NodeJS.Timeout | undefined
  #running: Promise<void> | undefined
  #failure: unknown
  #isClosed = false

  constructor(options: LogSignerOptions) {
    this.#options = options
    this.#sql = statementsFor(options.db.schema)
  }

  /** Why the latest attempt failed. */
  get problem(): string | undefined {
    return this.#failure === undefined ? undefined : messageOf(this.#failure)
  }

  start(): void {
    this.#timer = setInterval(() => void this.run(), this.#options.everyMs).unref()
  }

  /** Signs now, if this process is the signer. Never rejects, because calls do not depend on it. */
  run(): Promise<void> {
    this.#running ??= this.#round()
    return this.#running
  }

  /** Returns the time of the database, if this process is the signer. */
  async claim(): Promise<number | undefined> {
    const log = await this.#claim()
    return log && numberIn(log, 'now')
  }

  /**
   * Signs that records of a chain may be removed. Returns whether it has signed, because another process may sign
   * meanwhile.
   */
  async prune(chain: PrunedChain): Promise<boolean> {
    while (this.#running !== undefined) await this.#running
    let isSigned = false
    this.#running = this.#round(async () => (isSigned = await this.#signPruned(chain)))
    await this.#running
    return isSigned
  }

  /** Signs once more, and then lets another process sign. */
  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    clearInterval(this.#timer)
    await this.#running
    await this.run()
    await this.#query(this.#sql.release, [this.#options.name]).catch(() => undefined)
  }

  async #round(sign = () => this.#sign()): Promise<void> {
    let hasSigned = false
    let failure: unknown
    try {
      hasSigned = await sign()
    } catch (error) {
      failure = error
    }
    if (failure !== undefined && this.#failure === undefined) this.#options.onFault(failure)
    this.#failure = failure
    await this.#options.afterRound(hasSigned)
    this.#running = undefined
  }

  /** Returns whether this process signs. */
  async #sign(): Promise<boolean> {
    const leaseMs = LOST_AFTER * this.#options.everyMs
    const log = await this.#claim()
    if (log === undefined) return false
    // The chain of a closing process has ended, so the next signer records the calls that lost chains left open.
    for (const lost of this.#isClosed ? [] : await this.#query(this.#sql.findLost, [leaseMs])) {
      await this.#options.onLost(numberIn(lost, 'id'))
      await this.#query(this.#sql.lose, [numberIn(lost, 'id'), leaseMs])
    }
    const ts = timeOf(log)
    const changed = await this.#query(this.#sql.changed, [MAX_CHAINS])
    await this.#add(
      log,
      changed.flatMap((row) => leavesOf(row, ts)),
    )
    return true
  }

  async #claim(): Promise<Row | undefined> {
    const { chain, name, everyMs, signer } = this.#options
    const [log] = await this.#query(this.#sql.claim, [chain, name, LOST_AFTER * everyMs, signer.verifierKey])
    return log
  }

  async #signPruned({ id, replica, incarnation, seq, head, root, tree, nextLeaf }: PrunedChain): Promise<boolean> {
    const log = await this.#claim()
    if (log === undefined) return false
    const text = createLeaf({ type: 'pruned', replica, incarnation, seq, head, root, ts: timeOf(log) })
    const pruned = [id, seq, JSON.stringify(tree), nextLeaf]
    return this.#add(log, [{ chain: null, status: '', seq: 0, text }], pruned)
  }

  /** Adds leaves to the log. Returns whether they were added. `pruned`: further parameters of `prune_audit`. */
  async #add(log: Row, added: readonly NewLeaf[], pruned: readonly unknown[] = []): Promise<boolean> {
    const { name, origin, signer } = this.#options
    const ts = timeOf(log)
    const size = numberIn(log, 'size')
    const leaves = [...added]
    leaves.push({ chain: null, status: '', seq: 0, text: createLeaf({ type: 'signed', by: name, ts }) })
    const texts = leaves.map(({ text }) => text)
    const tree = extendLog({ size, frontier: log['frontier'] as readonly string[] }, texts)
    const [row = {}] = await this.#query(pruned.length > 0 ? this.#sql.prune : this.#sql.add, [
      name,
      size,
      tree.frontier,
      leaves.map((leaf) => leaf.chain),
      leaves.map((leaf) => leaf.status),
      leaves.map((leaf) => leaf.seq),
      texts,
      signer.sign({ origin, size: tree.size, root: tree.root() }),
      ...pruned,
    ])
    return row['added'] === true
  }

  #query(of: Statement, values: readonly unknown[]): Promise<readonly Row[]> {
    return this.#options.db.query(of, values)
  }
}

/** The records of a chain that may be removed. */
export interface PrunedChain {
  readonly id: number
  readonly replica: string
  readonly incarnation: string
  /** The number of the last record. Its hash, the root and the tree up to it follow. */
  readonly seq: number
  readonly head: string
  readonly root: string
  readonly tree: RecordTreeState
  /** Leaves before this index are about records that may be removed. */
  readonly nextLeaf: number
}

function timeOf(log: Row): string {
  return new Date(numberIn(log, 'now')).toISOString()
}

interface NewLeaf {
  readonly chain: number | null
  readonly status: string
  readonly seq: number
  readonly text: string
}

/** Returns the leaves for a chain. A new chain joins first. */
function leavesOf(row: Row, ts: string): readonly NewLeaf[] {
  const status = textIn(row, 'status')
  const { id: chain, seq } = { id: numberIn(row, 'id'), seq: numberIn(row, 'seq') }
  const leaf = (type: string): NewLeaf => ({
    chain,
    status: type === 'joined' ? 'live' : type,
    seq,
    text: createLeaf({
      type: type as Exclude<Leaf['type'], 'signed'>,
      replica: textIn(row, 'replica'),
      incarnation: textIn(row, 'incarnation'),
      seq,
      head: textIn(row, 'head'),
      root: textIn(row, 'root'),
      ts,
    }),
  })
  const joined = row['leaf_status'] === null ? [leaf('joined')] : []
  return joined.length > 0 && status === 'live' ? joined : [...joined, leaf(status)]
}

function statementsFor(schema: string) {
  const [chains, log] = [`${schema}.audit_chains`, `${schema}.audit_log`]
  const ago = (parameter: number) => `clock_timestamp() - $${parameter}::float8 * interval '1 millisecond'`
  const isLost = (parameter: number) => `status = 'live' AND renewed_at < ${ago(parameter)}
    AND (local_seq IS NULL OR renewed_at < clock_timestamp() - interval '${DISK_RETURNS}')`
  return {
    claim: statement(`
      WITH beat AS (UPDATE ${chains} SET renewed_at = clock_timestamp() WHERE id = $1 AND status = 'live')
      UPDATE ${log} SET signer = $2, signer_until = clock_timestamp() + $3::float8 * interval '1 millisecond',
        verifiers = CASE WHEN $4 = ANY (verifiers) THEN verifiers ELSE verifiers || $4::text END
      WHERE signer IS NULL OR signer = $2 OR signer_until < clock_timestamp()
      RETURNING size, frontier, extract(epoch FROM clock_timestamp()) * 1000 AS now`),
    findLost: statement(`SELECT id FROM ${chains} WHERE ${isLost(1)} LIMIT 100`),
    lose: statement(`UPDATE ${chains} SET status = 'lost' WHERE id = $1 AND ${isLost(2)}`),
    changed: statement(`
      SELECT id, replica, incarnation, seq, head, root, status, leaf_status FROM ${chains}
      WHERE leaf_status IS DISTINCT FROM status OR leaf_seq IS DISTINCT FROM seq ORDER BY id LIMIT $1`),
    add: statement(`SELECT ${schema}.sign_audit($1, $2, $3, $4, $5, $6, $7, $8) AS added`),
    prune: statement(`SELECT ${schema}.prune_audit($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) AS added`),
    release: statement(`UPDATE ${log} SET signer = NULL WHERE signer = $1`),
  }
}
