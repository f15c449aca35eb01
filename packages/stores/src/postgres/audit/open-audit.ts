import { randomUUID } from 'node:crypto'
import {
  type AuditCounter,
  type AuditExporter,
  type AuditReader,
  type AuditSink,
  type SealOptions,
  SOLE_WRITER,
} from '@toolgate/core/audit'
import { checkShape, shapeOf } from '@toolgate/core/internal'
import type { AuditEvidence } from '../../evidence.ts'
import { ownEntry } from '../../own-records.ts'
import type { PostgresDatabase } from '../database.ts'
import { beginChain, type ChainName } from './chain-store.ts'
import { sharedReader, type SharedAuditReader } from './reader.ts'
import { newChain, SharedSink } from './shared-sink.ts'

export interface SharedAuditOptions extends SealOptions {
  /** The replica that writes. */
  readonly replica: string
  /** One start of it, which has a chain of its own. Default: a new one. */
  readonly incarnation?: string
  /** How many entries may wait for the database. Then writes are refused. Default 10,000. */
  readonly maxWaiting?: number
  /** The clock for the audit's own records. Default: the system's. */
  readonly nowMs?: () => number
}

const OPTIONS = shapeOf<SharedAuditOptions>({
  replica: true,
  incarnation: true,
  maxWaiting: true,
  nowMs: true,
  redact: true,
  preview: true,
  inputKey: true,
})

/** The audit of several replicas. It reads the records of all, and writes those of one. */
export interface SharedAudit extends AuditSink, AuditReader, AuditExporter, AuditCounter {
  readonly chain: ChainName
  /** How many entries were refused. */
  readonly droppedCount: number
  /** Why calls are refused now. */
  readonly problem: string | undefined
  evidence(): AuditEvidence
}

/**
 * Begins the chain of one start of a replica. It is in the database when the promise resolves.
 *
 * @throws {ConfigError} for an unknown option, and for a chain that another process has begun
 */
export async function openSharedAudit(db: PostgresDatabase, options: SharedAuditOptions): Promise<SharedAudit> {
  checkShape('openAudit', options, OPTIONS)
  const { replica, incarnation = randomUUID(), maxWaiting = 10_000, nowMs = Date.now } = options
  const { redact, preview, inputKey } = options
  const sealing = { redact, preview, inputKey }
  const { sealer, tree } = newChain(sealing)
  const chain = { replica, incarnation }
  const store = await beginChain(db, chain, { end: sealer, root: tree.root() })
  const sink = new SharedSink({ store, sealing, sealer, tree, nowMs, maxWaiting })
  await sink.record(ownEntry('audit_opened', nowMs(), { reason: SOLE_WRITER }))
  return toAudit(chain, sink, sharedReader(db, store.id))
}

function toAudit(chain: ChainName, sink: SharedSink, reader: SharedAuditReader): SharedAudit {
  return {
    ...reader,
    chain,
    write: (entry) => sink.write(entry),
    flush: () => sink.flush(),
    close: () => sink.close(),
    evidence: () => ({ problems: [] }),
    get droppedCount() {
      return sink.droppedCount
    },
    get problem() {
      return sink.problem
    },
  }
}
