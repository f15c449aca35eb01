import { existsSync, readFileSync } from 'node:fs'
import { ConfigError } from '@toolgate/core'
import { checkShape, shapeOf } from '@toolgate/values'
import { type AuditVerdict, worse } from '@toolgate/core/audit'
import { createFindings } from '@toolgate/core/internal'
import { keysIn, publicKeysOf } from './checkpoint-file.ts'
import { openCheckpointSource } from './checkpoint-source.ts'
import { checkpointsPath } from './evidence.ts'
import { type FileRecords, notAnAudit, THE_CHAIN, withRecords } from './file-source.ts'
import { keyOf, readSignedLog } from './shared-audit/log.ts'
import type { AuditSource } from './shared-audit/source.ts'
import { verifyChain } from './shared-audit/verify-chain.ts'

export interface VerifyAuditOptions {
  /** The path of an audit in SQLite or JSON lines. Its first bytes show the format. */
  readonly path: string
  /** The path of the checkpoints. Default: see {@link checkpointsPath}. */
  readonly checkpoints?: string | undefined
  /**
   * Whether the audit must have checkpoints: without any it is `unsigned`. Default: `true` if `checkpoints` is given,
   * or the audit mentions checkpoints.
   */
  readonly mustBeSigned?: boolean | undefined
  /**
   * The trusted public keys, `name+id+key`. Default: the keys beside the checkpoints, which anyone who can change the
   * checkpoints can change too.
   */
  readonly verifiers?: readonly string[] | undefined
  /** The maximum number of findings that are returned. All are counted. */
  readonly maxFindings?: number | undefined
}

export {
  type AuditEvidence,
  checkpointsPath,
  type EvidenceProblem,
  type EvidenceProblemCode,
  findPlaceProblems,
} from './evidence.ts'

export { exportSharedAudit, openExportedAudit } from './shared-audit/folder.ts'
export { readNotes } from './shared-audit/note-file.ts'
export { proveGrowth, proveRecords, type RecordProofs } from './shared-audit/prove.ts'
export type { AuditSource, SoughtRecords } from './shared-audit/source.ts'
export { type SharedVerdict, verifySharedAudit } from './shared-audit/verify.ts'

export { findFileProblem } from './store-file.ts'

const OPTIONS = shapeOf<VerifyAuditOptions>({
  path: true,
  checkpoints: true,
  verifiers: true,
  mustBeSigned: true,
  maxFindings: true,
})

/**
 * Verifies an audit in a file against its chain and its checkpoints, even while it is being written.
 *
 * @throws {ToolgateError} `audit_unavailable` for a file that cannot be read, `audit_invalid` for a file that is not an
 * audit
 * @throws {ConfigError} for a key that cannot be used
 */
export async function verifyAudit(options: VerifyAuditOptions): Promise<AuditVerdict> {
  checkShape('verifyAudit', options, OPTIONS)
  const verdict = await verifyOnce(options)
  // The audit may mention checkpoints that were created after the checkpoints were read, and inputs may be removed
  // meanwhile.
  const mayPass = verdict.status === 'unsigned' || (verdict.inputs?.missing ?? 0) > 0
  return mayPass ? verifyOnce(options) : verdict
}

async function verifyOnce(options: VerifyAuditOptions): Promise<AuditVerdict> {
  const { path, maxFindings = 100 } = options
  return withFile(options, async (source) => {
    const found = createFindings(maxFindings)
    const { verifiers } = await source.readLog()
    const log = verifiers.length === 0 ? undefined : await readSignedLog(source, { report: found.report })
    const verdict = await verifyChain(source, THE_CHAIN, {
      signed: log?.chains.get(keyOf(THE_CHAIN))?.points ?? [],
      missing: missingText(options, source),
      maxFindings,
      end: () => ({ torn: source.isTorn() }),
    })
    if (isForeign(verdict, source)) throw notAnAudit(path)
    return {
      ...verdict,
      status: worse(found.status, verdict.status),
      findings: [...found.findings, ...verdict.findings].slice(0, maxFindings),
      findingCount: found.findingCount + verdict.findingCount,
    }
  })
}

/** Whether a file is not an audit: no line is a record, and it has no checkpoint. */
function isForeign({ records, lastSeq, checkpoints }: AuditVerdict, { beginsAsAudit }: FileRecords): boolean {
  return (records > 0 || !beginsAsAudit) && lastSeq === 0 && checkpoints.count === 0
}

/** Returns the text of the finding that an audit lacks required checkpoints. */
function missingText(options: VerifyAuditOptions, { hasCheckpoints, verifiers }: FileSource): string | undefined {
  const { mustBeSigned = options.checkpoints !== undefined } = options
  const file = checkpointsFile(options)
  if (hasCheckpoints && verifiers.length === 0)
    return `The public keys ${publicKeysOf(file)} are missing, so the checkpoints cannot be checked.`
  if (!mustBeSigned) return undefined
  return hasCheckpoints ? `There is no checkpoint in ${file}.` : `The checkpoints ${file} are missing.`
}

/** An audit in a file: a chain, and the log that signs it. */
interface FileSource extends FileRecords, AuditSource {
  readonly hasCheckpoints: boolean
  /** The trusted keys. */
  readonly verifiers: readonly string[]
}

/**
 * Runs `use` with an audit in a file, to prove its records.
 *
 * @throws {ToolgateError} as {@link verifyAudit}
 */
export async function withAuditFile<T>(
  options: VerifyAuditOptions,
  use: (source: AuditSource) => Promise<T>,
): Promise<T> {
  checkShape('withAuditFile', options, OPTIONS)
  return withFile(options, use)
}

async function withFile<T>(options: VerifyAuditOptions, use: (source: FileSource) => Promise<T>): Promise<T> {
  return withRecords(options.path, async (records) => {
    // The checkpoints are opened before the records are read, because a newer checkpoint would be ahead of them.
    const log = openCheckpointSource(checkpointsFile(options))
    try {
      const verifiers = log === undefined ? [] : trustedKeys(log.path, options)
      return await use({
        ...records,
        hasCheckpoints: log !== undefined,
        verifiers,
        // The log of a file has no size of its own. The records say up to where checkpoints signed them.
        readLog: async () => ({ size: 0, verifiers }),
        notes: () => log?.notes() ?? nothing(),
        leaves: (from, to) => log?.leaves(from, to) ?? nothing(),
        chains: async () => [THE_CHAIN],
        // The chain itself says which inputs were removed.
        inputsRemoved: async () => [],
        nowMs: async () => Date.now(),
      })
    } finally {
      log?.close()
    }
  })
}

async function* nothing(): AsyncGenerator<never> {}

function checkpointsFile({ path, checkpoints }: VerifyAuditOptions): string {
  return checkpointsPath(path, checkpoints === undefined ? {} : { path: checkpoints })
}

/** Returns the trusted keys, or none if none are given and the file beside the checkpoints is missing. */
function trustedKeys(checkpoints: string, { verifiers }: VerifyAuditOptions): readonly string[] {
  const file = publicKeysOf(checkpoints)
  if (verifiers === undefined && !existsSync(file)) return []
  const keys = verifiers ?? keysIn(readFileSync(file, 'utf8'))
  if (keys.length === 0) throw new ConfigError('', 'there is no public key to verify checkpoints with')
  return keys
}
