import {
  AUDIT_FINDINGS,
  type AuditFinding,
  type AuditVerdictStatus,
  createMerkleTree,
  createNoteVerifier,
  createVerifier,
  type NoteVerifier,
  parseLeaf,
  type SignedPoint,
  type TreeHead,
  worse,
} from '@toolgate/core/audit'
import { numberIn, type Row, textIn } from '../../rows.ts'
import { type PostgresDatabase, statement } from '../database.ts'
import { toHex } from './log-signer.ts'

export interface VerifySharedOptions {
  /** The trusted public keys of the log, `name+id+key`. Default: those in the database, which whoever can change it can change too. */
  readonly verifiers?: readonly string[] | undefined
  /** How many findings are kept. All are counted. */
  readonly maxFindings?: number | undefined
}

/** What was found about one chain. */
export interface ChainVerdict {
  readonly replica: string
  readonly incarnation: string
  /** What the newest leaf says; `new` for none. `lost` is no alarm: the process ended without saying so. */
  readonly state: 'new' | 'live' | 'left' | 'lost'
  readonly lastSeq: number
  /** The last record that a checkpoint has signed; 0 for none. */
  readonly signedSeq: number
}

export interface SharedVerdict {
  /** The worst status of all findings. */
  readonly status: AuditVerdictStatus
  readonly records: number
  readonly chains: readonly ChainVerdict[]
  readonly checkpoints: { readonly count: number; readonly size: number; readonly lastTs: string | undefined }
  readonly findings: readonly AuditFinding[]
  readonly findingCount: number
}

/** The points at which checkpoints have signed a chain. */
interface SignedChain {
  readonly replica: string
  readonly incarnation: string
  state: ChainVerdict['state']
  readonly points: SignedPoint[]
}

const PAGE = 2000
/** Checkpoints are made every 10 s. Without one for so long, what follows is unsigned. */
const STALE_MS = 60_000

/**
 * Verifies the chains of all replicas against the log that signs them, while they are written.
 *
 * Finds and locates what was edited, inserted, removed, reordered, cut off or rewritten, a chain that was removed, and a log that
 * was.
 */
export async function verifySharedAudit(
  db: PostgresDatabase,
  options: VerifySharedOptions = {},
): Promise<SharedVerdict> {
  const { maxFindings = 100 } = options
  const findings: AuditFinding[] = []
  let [findingCount, status]: [number, AuditVerdictStatus] = [0, 'ok']
  const report = (finding: AuditFinding): void => {
    findingCount++
    status = worse(status, AUDIT_FINDINGS[finding.kind])
    if (findings.length < maxFindings) findings.push(finding)
  }
  const sql = statementsFor(db.schema)
  // The order matters: what is read later is never behind what was read before.
  const log = await readLog(db, sql, { report, verifiers: options.verifiers })
  const rows = await db.query(sql.chains)
  const chains: ChainVerdict[] = []
  let records = 0
  let unsigned = 0
  for (const row of rows) {
    const [replica, incarnation] = [textIn(row, 'replica'), textIn(row, 'incarnation')]
    const key = keyOf(replica, incarnation)
    const signed = log.chains.get(key)
    log.chains.delete(key)
    const verifier = createVerifier({ signed: signed?.points ?? [], maxFindings })
    await feed(db, sql, numberIn(row, 'id'), verifier)
    const verdict = verifier.finish()
    for (const finding of verdict.findings) report(located(finding, { replica, incarnation }))
    findingCount += verdict.findingCount - verdict.findings.length
    const { lastSeq } = verdict
    const signedSeq = signed?.points.at(-1)?.seq ?? 0
    const claimed = numberIn(row, 'seq')
    if (lastSeq < claimed && lastSeq >= signedSeq) report(located(cutShort(lastSeq, claimed), { replica, incarnation }))
    records += verdict.records
    unsigned += Math.max(0, lastSeq - signedSeq)
    chains.push({ replica, incarnation, state: signed?.state ?? 'new', lastSeq, signedSeq })
  }
  for (const { replica, incarnation, points } of log.chains.values()) {
    const seq = points.at(-1)?.seq ?? 0
    if (seq === 0) continue
    const text = `The whole chain is missing: checkpoints have signed its records 1 to ${seq}.`
    report(located({ kind: 'truncated', seq: 1, text }, { replica, incarnation }))
  }
  const [now = {}] = await db.query(sql.now)
  const late = staleText(log.lastTs, numberIn(now, 'now'))
  if (unsigned > 0 && late !== undefined)
    report({ kind: 'unsigned', text: `${late} ${unsigned} records are unsigned.` })
  const checkpoints = { count: log.count, size: log.size, lastTs: log.lastTs }
  return { status, records, chains, checkpoints, findings, findingCount }
}

type Report = (finding: AuditFinding) => void

interface ReadLog {
  readonly count: number
  readonly size: number
  readonly lastTs: string | undefined
  readonly chains: Map<string, SignedChain>
}

/** Reads the leaves that are signed, and checks every signature and every root on the way. */
async function readLog(
  db: PostgresDatabase,
  sql: ReturnType<typeof statementsFor>,
  { report, verifiers }: { readonly report: Report; readonly verifiers: readonly string[] | undefined },
): Promise<ReadLog> {
  const [kept = {}] = await db.query(sql.log)
  const trusted = (verifiers ?? (kept['verifiers'] as readonly string[])).map((key) => createNoteVerifier(key))
  const heads: TreeHead[] = []
  for (const [i, row] of (await db.query(sql.notes)).entries()) {
    const head = openNote(textIn(row, 'note'), trusted)
    if (head !== undefined && head.size === numberIn(row, 'size')) heads.push(head)
    else report({ kind: 'forged', checkpoint: i + 1, text: `Checkpoint ${i + 1} is not signed by a trusted key.` })
  }
  const chains = new Map<string, SignedChain>()
  const tree = createMerkleTree()
  let lastTs: string | undefined
  let [at, isRewritten] = [0, false]
  for (let from = 0; ;) {
    const rows = await db.query(sql.leaves, [from, heads.at(-1)?.size ?? 0, PAGE])
    for (const row of rows) {
      const index = numberIn(row, 'index')
      if (index !== tree.size && !isRewritten) {
        isRewritten = true
        report({ kind: 'missing', text: `Leaves ${tree.size} to ${index - 1} of the log are missing.` })
      }
      const text = textIn(row, 'leaf')
      tree.add(toHex(text))
      lastTs = addLeaf(text, chains) ?? lastTs
      for (let head = heads[at]; head !== undefined && head.size <= tree.size; head = heads[++at]) {
        if ((head.size === tree.size && head.root === tree.root()) || isRewritten) continue
        isRewritten = true
        const since = heads[at - 1]?.size ?? 0
        report({
          kind: 'rewritten',
          checkpoint: at + 1,
          text: `Leaves ${since} to ${head.size - 1} of the log are not those that checkpoint ${at + 1} has signed.`,
        })
      }
    }
    if (rows.length < PAGE) break
    from = numberIn(rows.at(-1) ?? {}, 'index') + 1
  }
  const newest = heads.at(-1)?.size ?? 0
  if (tree.size < newest && !isRewritten)
    report({ kind: 'truncated', text: `Leaves ${tree.size} to ${newest - 1} are missing at the end of the log.` })
  if (numberIn(kept, 'size') > newest)
    report({
      kind: 'truncated',
      text: `The newest checkpoints are missing: the log had ${numberIn(kept, 'size')} leaves.`,
    })
  return { count: heads.length, size: tree.size, lastTs, chains }
}

function openNote(note: string, trusted: readonly NoteVerifier[]): TreeHead | undefined {
  for (const verifier of trusted) {
    const head = verifier.open(note)
    if (head !== undefined) return head
  }
  return undefined
}

/** Notes what a leaf says. Returns its time if it ends a checkpoint. */
function addLeaf(text: string, chains: Map<string, SignedChain>): string | undefined {
  const leaf = parseLeaf(text)
  if (leaf === undefined) return undefined
  const { ts } = leaf
  if (leaf.type === 'signed') return ts
  const { type, replica, incarnation, seq, head: headHash, root: merkleRoot } = leaf
  const key = keyOf(replica, incarnation)
  const chain = chains.get(key) ?? { replica, incarnation, state: 'live', points: [] }
  chains.set(key, chain)
  chain.state = type === 'joined' ? 'live' : type
  if (seq > 0) chain.points.push({ seq, count: seq, headHash, merkleRoot, ts })
  return undefined
}

function keyOf(replica: string, incarnation: string): string {
  return JSON.stringify([replica, incarnation])
}

/** Feeds the records of a chain. */
async function feed(
  db: PostgresDatabase,
  sql: ReturnType<typeof statementsFor>,
  chain: number,
  verifier: ReturnType<typeof createVerifier>,
): Promise<void> {
  // A row that was tampered with may have a number below 0.
  for (let after = Number.MIN_SAFE_INTEGER; ;) {
    const rows = await db.query(sql.records, [chain, after, PAGE])
    for (const row of rows) {
      const text = textIn(row, 'record')
      verifier.add(text)
      const column = otherColumn(row, text)
      if (column !== undefined) verifier.report(`The column ${column} of its row is not what the record says.`)
    }
    if (rows.length < PAGE) return
    after = numberIn(rows.at(-1) ?? {}, 'seq')
  }
}

/** Returns a column that differs from its record. Counts use the columns, so a changed one would hide a record. */
function otherColumn(row: Row, text: string): string | undefined {
  if (!text.includes(`,"seq":${numberIn(row, 'seq')},`)) return 'seq'
  if (!text.includes(`"event":${JSON.stringify(row['event'])}`)) return 'event'
  const at = text.indexOf(',"ts":"') + ',"ts":"'.length
  return Date.parse(text.slice(at, text.indexOf('"', at))) === numberIn(row, 'at') ? undefined : 'at'
}

function located(
  finding: AuditFinding,
  { replica, incarnation }: { replica: string; incarnation: string },
): AuditFinding {
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

function statementsFor(schema: string) {
  return {
    log: statement(`SELECT size, verifiers FROM ${schema}.audit_log`),
    notes: statement(`SELECT size, note FROM ${schema}.audit_notes ORDER BY size`),
    leaves: statement(
      `SELECT index, leaf FROM ${schema}.audit_leaves WHERE index >= $1 AND index < $2 ORDER BY index LIMIT $3`,
    ),
    chains: statement(`SELECT id, replica, incarnation, seq FROM ${schema}.audit_chains ORDER BY id`),
    records: statement(
      `SELECT seq, at, event, record FROM ${schema}.audit WHERE chain = $1 AND seq > $2 ORDER BY seq LIMIT $3`,
    ),
    now: statement('SELECT extract(epoch FROM clock_timestamp()) * 1000 AS now'),
  }
}
