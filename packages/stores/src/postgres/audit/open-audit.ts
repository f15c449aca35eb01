import { randomBytes, randomUUID } from 'node:crypto'
import {
  type AuditCounter,
  type AuditEntry,
  type AuditExporter,
  type AuditReader,
  type AuditRecord,
  type AuditSink,
  createNoteSigner,
  newSigningKey,
  type SealOptions,
  SOLE_WRITER,
} from '@toolgate/core/audit'
import { checkShape, parseRecord, shapeOf } from '@toolgate/core/internal'
import type { StateStore } from '@toolgate/core/stores'
import type { AuditEvidence } from '../../evidence.ts'
import { abandonedEntry, createOpenCalls, ownEntry } from '../../own-records.ts'
import { numberIn, textIn } from '../../rows.ts'
import { type PostgresDatabase, statement } from '../database.ts'
import { beginChain, type ChainName } from './chain-store.ts'
import { LogSigner } from './log-signer.ts'
import { sharedReader, type SharedAuditReader } from './reader.ts'
import { newChain, SharedSink } from './shared-sink.ts'

export interface SharedAuditOptions extends SealOptions {
  /** The replica that writes. */
  readonly replica: string
  /** One start of it, which has a chain of its own. Default: a new one. */
  readonly incarnation?: string
  /** How many entries may wait for the database. Then writes are refused. Default 10,000. */
  readonly maxWaiting?: number
  /** The signed log of all chains. */
  readonly log?: SharedLogOptions
  /** The clock for the audit's own records. Default: the system's. */
  readonly nowMs?: () => number
  /** Called when the log cannot be signed. Calls continue. */
  readonly onFault?: (error: unknown) => void
}

export interface SharedLogOptions {
  /** Names the log in its notes. Default `toolgate-audit`. It must be the same for all replicas. */
  readonly name?: string
  /**
   * An Ed25519 private key in PEM, the same for all replicas. Default: one that is made once and kept in the database, where
   * whoever may read the state can use it.
   */
  readonly key?: string
  /** Default 10,000. */
  readonly everyMs?: number
}

const OPTIONS = shapeOf<SharedAuditOptions>({
  replica: true,
  incarnation: true,
  maxWaiting: true,
  log: true,
  nowMs: true,
  onFault: true,
  redact: true,
  preview: true,
  inputKey: true,
})

const LOG = shapeOf<SharedLogOptions>({ name: true, key: true, everyMs: true })

/** Where keys are that all replicas share. They are made at first use. */
const KEYS = { signing: 'gateway/audit/signing-key', inputs: 'gateway/audit/input-key' } as const

/** The audit of several replicas. It reads the records of all, and writes those of one. */
export interface SharedAudit extends AuditSink, AuditReader, AuditExporter, AuditCounter {
  readonly chain: ChainName
  write(entry: AuditEntry): Promise<void>
  /** How many entries were refused. */
  readonly droppedCount: number
  /** Why calls are refused now. */
  readonly problem: string | undefined
  evidence(): AuditEvidence
  /** Signs the log now, if this process is the one that signs. */
  sign(): Promise<void>
}

/**
 * Begins the chain of one start of a replica. It is in the database when the promise resolves.
 *
 * @throws {ConfigError} for an unknown option, and for a chain that another process has begun
 */
export async function openSharedAudit(
  db: PostgresDatabase,
  state: Pick<StateStore, 'get' | 'add'>,
  options: SharedAuditOptions,
): Promise<SharedAudit> {
  checkShape('openAudit', options, OPTIONS)
  const { replica, incarnation = randomUUID(), maxWaiting = 10_000, nowMs = Date.now, log = {} } = options
  checkShape('openAudit.log', log, LOG)
  const { redact, preview, onFault = () => {} } = options
  const { name: origin = 'toolgate-audit', everyMs = 10_000 } = log
  const signer = createNoteSigner(origin, log.key ?? (await sharedKey(state, KEYS.signing, newSigningKey)))
  const inputKey = options.inputKey ?? Buffer.from(await sharedKey(state, KEYS.inputs, newInputKey), 'hex')
  const sealing = { redact, preview, inputKey }
  const { sealer, tree } = newChain(sealing)
  const chain = { replica, incarnation }
  const store = await beginChain(db, chain, { end: sealer, root: tree.root() })
  const sink = new SharedSink({ store, sealing, sealer, tree, nowMs, maxWaiting })
  await sink.record(ownEntry('audit_opened', nowMs(), { reason: SOLE_WRITER }))
  const onLost = async (lost: number) => {
    const open = await openCallsOf(db, lost)
    if (open.length > 0) await sink.record(...open.map((call) => abandonedEntry(call, nowMs())))
  }
  const logSigner = new LogSigner({
    db,
    chain: store.id,
    name: `${replica}/${incarnation}`,
    origin,
    signer,
    everyMs,
    onLost,
    onFault,
  })
  logSigner.start()
  return toAudit(chain, { sink, reader: sharedReader(db, store.id), logSigner })
}

function newInputKey(): string {
  return randomBytes(32).toString('hex')
}

/** Returns the key that all replicas have. */
async function sharedKey(state: Pick<StateStore, 'get' | 'add'>, key: string, make: () => string): Promise<string> {
  const kept = await state.get(key)
  if (typeof kept === 'string') return kept
  const made = make()
  return (await state.add(key, made)) ? made : String(await state.get(key))
}

const PAGE = 1000

/** Returns the calls that a chain has left open. */
async function openCallsOf(db: PostgresDatabase, chain: number): Promise<readonly AuditRecord[]> {
  const page = statement(
    `SELECT seq, record FROM ${db.schema}.audit WHERE chain = $1 AND seq > $2 ORDER BY seq LIMIT ${PAGE}`,
  )
  const calls = createOpenCalls<AuditRecord>()
  for (let after = 0; ;) {
    const rows = await db.query(page, [chain, after])
    for (const row of rows) {
      const record = parseRecord(textIn(row, 'record'))
      if (record !== undefined) calls.note(record)
    }
    if (rows.length < PAGE) return calls.list()
    after = numberIn(rows.at(-1) ?? {}, 'seq')
  }
}

interface AuditParts {
  readonly sink: SharedSink
  readonly reader: SharedAuditReader
  readonly logSigner: LogSigner
}

function toAudit(chain: ChainName, { sink, reader, logSigner }: AuditParts): SharedAudit {
  return {
    ...reader,
    chain,
    write: (entry) => sink.write(entry),
    flush: () => sink.flush(),
    async close() {
      await sink.close()
      await logSigner.close()
    },
    sign: () => logSigner.run(),
    evidence() {
      const { problem } = logSigner
      if (problem === undefined) return { problems: [] }
      return { problems: [{ code: 'checkpoints_failing', message: `No checkpoint can be made: ${problem}.` }] }
    },
    get droppedCount() {
      return sink.droppedCount
    },
    get problem() {
      return sink.problem
    },
  }
}
