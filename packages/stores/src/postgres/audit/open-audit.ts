import { randomBytes, randomUUID } from 'node:crypto'
import {
  type AuditCounter,
  type AuditEntry,
  type AuditExporter,
  type AuditReader,
  type AuditRecord,
  type InputBoxes,
  type AuditSink,
  createNoteSigner,
  hashOfText,
  newSigningKey,
  type SealOptions,
  SOLE_WRITER,
} from '@toolgate/core/audit'
import { ConfigError } from '@toolgate/core'
import { checkShape, safely, shapeOf } from '@toolgate/values'
import { parseRecord } from '@toolgate/core/internal'
import type { StateStore } from '@toolgate/core/stores'
import type { AuditEvidence, EvidenceProblem } from '../../evidence.ts'
import { abandonedEntry, createOpenCalls, ownEntry } from '../../own-records.ts'
import { keepInputsMs } from '../../audit-options.ts'
import { inputRetention } from '../../input-retention.ts'
import { Rounds } from '../../rounds.ts'
import { numberIn, textIn } from '../../rows.ts'
import { type PostgresDatabase, statement } from '../database.ts'
import type { AuditProblem } from './audit-problem.ts'
import { beginChain, type ChainName, type ChainStore } from './chain-store.ts'
import { DiskSink } from './disk-sink.ts'
import { shipLeftovers, takeFolder } from './leftovers.ts'
import { LogSigner } from './log-signer.ts'
import { sharedReader, type SharedAuditReader } from './reader.ts'
import { SharedRetention } from './retention.ts'
import { newChain, SharedSink } from './shared-sink.ts'
import { openWitness, type Witness, type WitnessOptions } from './witness.ts'

export interface SharedAuditOptions extends SealOptions {
  /** The name of the replica that writes. */
  readonly replica: string
  /** One start of the replica, which has a chain of its own. Default: a new one. */
  readonly incarnation?: string
  /**
   * A folder on a disk that only this replica uses. A write then resolves when the record is synced there, and records
   * are shipped to the database in groups. If a record has waited for a second, calls are refused. Default: a write
   * resolves when the database has committed the record.
   */
  readonly disk?: string
  /**
   * The shortest time that records are kept, in milliseconds. The signing process removes older ones once a checkpoint
   * has signed them, so that the others still verify. Default: for ever.
   */
  readonly retainMs?: number
  /** The maximum number of entries that wait to be stored. Further writes are refused. Default 10,000. */
  readonly maxWaiting?: number
  /** The signed log of all chains. */
  readonly log?: SharedLogOptions
  /** The clock for the audit's own records. Default: the system's. */
  readonly nowMs?: () => number
  /** Called when the log cannot be signed, or calls of an earlier start cannot be ended. Calls continue. */
  readonly onFault?: (error: unknown) => void
  /** Called when calls begin to be refused, and with `undefined` when they are accepted again. */
  readonly onProblem?: (problem: AuditProblem | undefined) => void
}

export interface SharedLogOptions {
  /** The log's name in its notes, the same for all replicas. Default `toolgate-audit`. */
  readonly name?: string
  /**
   * An Ed25519 private key in PEM, the same for all replicas. Default: a key that is created once and stored in the
   * database, where everyone who can read the state can use it.
   */
  readonly key?: string
  /** The time between checkpoints, in milliseconds. Default 10,000. */
  readonly everyMs?: number
  /** The witness of each signed checkpoint, which detects a log that its signer has rewritten. */
  readonly witness?: WitnessOptions
}

const OPTIONS = shapeOf<SharedAuditOptions>({
  replica: true,
  incarnation: true,
  disk: true,
  retainMs: true,
  maxWaiting: true,
  log: true,
  nowMs: true,
  onFault: true,
  onProblem: true,
  redact: true,
  preview: true,
  inputs: true,
  inputKey: true,
})

const LOG = shapeOf<SharedLogOptions>({ name: true, key: true, everyMs: true, witness: true })
const WITNESS = shapeOf<WitnessOptions>({ file: true, url: true, key: true })

/** The names of keys that all replicas share. They are created at first use. */
const KEYS = { signing: 'gateway/audit/signing-key', inputs: 'gateway/audit/input-key' } as const

/** The audit of several replicas. It reads the records of all replicas, and writes those of one. */
export interface SharedAudit extends AuditSink, AuditReader, AuditExporter, AuditCounter, InputBoxes {
  readonly chain: ChainName
  write(entry: AuditEntry): Promise<void>
  /** The number of refused entries. */
  readonly droppedCount: number
  /** Why calls are refused now. */
  readonly problem: AuditProblem | undefined
  /** The records that only the replica's own disk has. Absent if the replica does not write there. */
  readonly unshipped: { readonly records: number; readonly ageMs: number } | undefined
  evidence(): AuditEvidence
  /** Returns the keyed hash of a text as `facts` contain it, for `whatIf`. */
  hashText(text: string): string
  /** Signs the log now, if this process is the signer. */
  sign(): Promise<void>
  /**
   * Removes now the sealed inputs whose time is over. If this process is the signer, it also removes records older than
   * `retainMs`.
   *
   * @throws if records cannot be removed
   */
  prune(): Promise<void>
}

/**
 * Begins the chain of one start of a replica. The chain is in the database when the promise resolves.
 *
 * @throws {ConfigError} for an unknown option, a chain that another process has begun, and an unusable folder
 */
export async function openSharedAudit(
  db: PostgresDatabase,
  state: Pick<StateStore, 'get' | 'add'>,
  options: SharedAuditOptions,
): Promise<SharedAudit> {
  checkShape('openAudit', options, OPTIONS)
  const { replica, incarnation = randomUUID(), nowMs = Date.now, log = {}, onFault = () => {} } = options
  checkShape('openAudit.log', log, LOG)
  if (log.witness !== undefined) checkShape('openAudit.log.witness', log.witness, WITNESS)
  const { retainMs } = options
  if (retainMs !== undefined && (!Number.isSafeInteger(retainMs) || retainMs < 1))
    throw new ConfigError('retainMs', 'must be a whole number, 1 or greater')
  const { name: origin = 'toolgate-audit', everyMs = 10_000 } = log
  const signer = createNoteSigner(origin, log.key ?? (await sharedKey(state, KEYS.signing, newSigningKey)))
  const chain = { replica, incarnation }
  const witness = log.witness && (await openWitness(db, log.witness, { verifierKey: signer.verifierKey, onFault }))
  const { sink, store, hashText, close } = await openSink(db, state, { ...options, chain })
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
    afterRound: async (hasSigned) => witness?.round(hasSigned),
  })
  logSigner.start()
  const { verifierKey } = signer
  const record = (entry: AuditEntry) => sink.record(entry)
  const retention = openRetention(db, { logSigner, verifierKey, options, record })
  const inputs = openInputRetention(db, options, record)
  return toAudit(chain, {
    sink,
    reader: sharedReader(db, store.id),
    hashText,
    logSigner,
    retention,
    inputs,
    close,
    witness,
  })
}

interface RetentionDeps {
  readonly logSigner: LogSigner
  readonly verifierKey: string
  readonly options: SharedAuditOptions
  readonly record: (entry: AuditEntry) => Promise<void>
}

function openRetention(db: PostgresDatabase, deps: RetentionDeps): Rounds | undefined {
  const { logSigner, verifierKey, options, record } = deps
  const { retainMs, nowMs = Date.now, onFault = () => {} } = options
  if (retainMs === undefined) return undefined
  const isClosed = (): boolean => rounds.isClosed
  const retention = new SharedRetention({ db, retainMs, signer: logSigner, verifierKey, nowMs, isClosed, record })
  const rounds = new Rounds(() => retention.round(), onFault)
  rounds.start()
  return rounds
}

/** Opens the removal of sealed inputs. Each replica does it, and no input is removed twice. */
function openInputRetention(
  db: PostgresDatabase,
  options: SharedAuditOptions,
  record: (entry: AuditEntry) => Promise<void>,
): Rounds | undefined {
  const { nowMs = Date.now, onFault = () => {} } = options
  const keepForMs = keepInputsMs(options)
  if (keepForMs === undefined) return undefined
  const table = `${db.schema}.audit_inputs`
  const has = statement(`SELECT 1 AS found FROM ${table} WHERE at < $1 LIMIT 1`)
  const remove = statement(`
    DELETE FROM ${table} WHERE (chain, seq) IN (SELECT chain, seq FROM ${table} WHERE at < $1 ORDER BY at LIMIT ${INPUTS})
    RETURNING seq`)
  return inputRetention({
    keepForMs,
    nowMs,
    onFault,
    hasBefore: async (atMs) => (await db.query(has, [atMs])).length > 0,
    removeBefore: async (atMs) => (await db.query(remove, [atMs])).length === INPUTS,
    isPassing: () => false,
    record,
  })
}

/** The maximum number of sealed inputs that are removed at once. */
const INPUTS = 500

interface OpenedSink {
  readonly sink: SharedSink | DiskSink
  readonly store: ChainStore
  hashText(text: string): string
  close(): Promise<void>
}

async function openSink(
  db: PostgresDatabase,
  state: Pick<StateStore, 'get' | 'add'>,
  options: SharedAuditOptions & { readonly chain: ChainName },
): Promise<OpenedSink> {
  const { chain, disk, maxWaiting = 10_000, nowMs = Date.now, redact, preview, inputs, onFault = () => {} } = options
  const inputKey = options.inputKey ?? Buffer.from(await sharedKey(state, KEYS.inputs, newInputKey), 'hex')
  const sealing = { redact, preview, inputs, inputKey }
  const hashText = (text: string) => hashOfText(inputKey, text)
  const onProblem = safely(options.onProblem, onFault)
  const { sealer, tree } = newChain(sealing)
  const start = { end: sealer, root: tree.root() }
  if (disk === undefined) {
    const store = await beginChain(db, chain, start)
    const sink = new SharedSink({ store, sealing, sealer, tree, nowMs, maxWaiting, onProblem })
    await sink.record(ownEntry('audit_opened', nowMs(), { reason: SOLE_WRITER }))
    return { sink, store, hashText, close: () => sink.close() }
  }
  const folder = takeFolder(disk)
  try {
    const openCalls = async (of: number) => openCallsOf(db, of)
    const endCalls = await shipLeftovers({ db, folder: folder.path, sealing, nowMs, openCalls })
    const store = await beginChain(db, chain, { ...start, onDisk: 0 })
    const { incarnation } = chain
    const sink = new DiskSink({ folder: folder.path, incarnation, store, sealing, nowMs, maxWaiting, onProblem })
    await sink.start()
    const ending = endCalls().catch(onFault)
    const close = async () => {
      await ending
      await sink.close()
      folder.release()
    }
    return { sink, store, hashText, close }
  } catch (error) {
    folder.release()
    throw error
  }
}

function newInputKey(): string {
  return randomBytes(32).toString('hex')
}

/** Returns the key that all replicas share. */
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
  readonly sink: SharedSink | DiskSink
  readonly reader: SharedAuditReader
  readonly hashText: (text: string) => string
  readonly logSigner: LogSigner
  readonly retention: Rounds | undefined
  readonly inputs: Rounds | undefined
  readonly close: () => Promise<void>
  readonly witness: Witness | undefined
}

function toAudit(
  chain: ChainName,
  { sink, reader, hashText, logSigner, retention, inputs, close, witness }: AuditParts,
): SharedAudit {
  let closing: Promise<void> | undefined
  const end = async () => {
    await retention?.close()
    await inputs?.close()
    await close()
    await logSigner.close()
    await witness?.close()
  }
  return {
    ...(sink instanceof DiskSink ? settled(reader, sink) : reader),
    chain,
    hashText,
    write: (entry) => sink.write(entry),
    flush: () => sink.flush(),
    close: () => (closing ??= end()),
    async prune() {
      await retention?.run()
      await inputs?.run()
    },
    sign: () => logSigner.run(),
    evidence() {
      const problems: EvidenceProblem[] = []
      if (logSigner.problem !== undefined)
        problems.push({ code: 'checkpoints_failing', message: `No checkpoint can be made: ${logSigner.problem}.` })
      if (witness?.problem !== undefined)
        problems.push({
          code: 'witness_failing',
          message: `The witness does not have the newest checkpoint: ${witness.problem}.`,
        })
      return { problems }
    },
    get droppedCount() {
      return sink.droppedCount
    },
    get problem() {
      return sink.problem
    },
    get unshipped() {
      return sink instanceof DiskSink ? { records: sink.unshipped, ageMs: sink.unshippedMs } : undefined
    },
  }
}

/** Returns a reader that first waits a moment for this replica's unshipped records. */
function settled(reader: SharedAuditReader, sink: DiskSink): SharedAuditReader {
  return {
    async query(query) {
      await sink.settle()
      return reader.query(query)
    },
    async *exportRecords(query) {
      await sink.settle()
      yield* reader.exportRecords(query)
    },
    async countOutcomes(query) {
      await sink.settle()
      return reader.countOutcomes(query)
    },
    async inputBoxes(records) {
      await sink.settle()
      return reader.inputBoxes(records)
    },
  }
}
