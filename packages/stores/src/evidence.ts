import { randomUUID } from 'node:crypto'
import { existsSync, linkSync, mkdirSync, readFileSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { errnoOf } from '@toolgate/core/internal'

/** Where checkpoints are, where that is given. */
interface GivenPlace {
  readonly path?: string | undefined
}

/** What can be wrong with the checkpoints of an audit that goes on recording all the same. */
export type EvidenceProblemCode =
  | 'checkpoints_missing'
  | 'checkpoints_failing'
  | 'checkpoints_together'
  | 'key_together'
  | 'key_readable'

export interface EvidenceProblem {
  readonly code: EvidenceProblemCode
  /** What is wrong and what to do, as sentences. */
  readonly message: string
}

/** What vouches for an audit beside its own chain. */
export interface AuditEvidence {
  /** Absent where checkpoints are switched off. */
  readonly checkpoints?: {
    readonly path: string
    /** The last record that a checkpoint has signed; 0 for none. */
    readonly signedSeq: number
    readonly signedAt?: string
  }
  readonly problems: readonly EvidenceProblem[]
}

/**
 * Returns where the checkpoints of an audit are: where `options` say, else in a folder of their own beside the audit, else
 * where an earlier version left them.
 */
export function checkpointsPath(auditPath: string, { path }: GivenPlace = {}): string {
  if (path !== undefined) return resolve(path)
  const audit = resolve(auditPath)
  const apart = join(dirname(audit), 'checkpoints', `${basename(audit)}.checkpoints`)
  const together = `${audit}.checkpoints`
  return !existsSync(apart) && existsSync(together) ? together : apart
}

/** Returns where the private key is that signs these checkpoints, unless one is given. */
export function privateKeyOf(checkpoints: string): string {
  return `${checkpoints}.key`
}

/** Returns where the key is that hashes of inputs are made with, unless one is given: where the signing key is. */
export function inputKeyOf(checkpoints: string): string {
  return `${checkpoints}.inputs.key`
}

/**
 * Returns what is wrong with the places of an audit, its checkpoints and its key. Opens none of them: they need not exist.
 *
 * @example
 * findPlaceProblems('/srv/audit.db', { path: '/srv/audit.db.checkpoints' })  // checkpoints_together, key_together
 */
export function findPlaceProblems(
  auditPath: string,
  options: GivenPlace & { readonly keyFile?: string | undefined } = {},
): readonly EvidenceProblem[] {
  const checkpoints = checkpointsPath(auditPath, options)
  const key = options.keyFile ?? privateKeyOf(checkpoints)
  const folder = realFolder(auditPath)
  const problems: EvidenceProblem[] = []
  if (realFolder(checkpoints) === folder)
    problems.push({
      code: 'checkpoints_together',
      message: `The checkpoints ${checkpoints} are in the folder of the audit: whoever replaces one can replace both. Move them to another folder, better to another disk or host.`,
    })
  if (realFolder(key) === folder)
    problems.push({
      code: 'key_together',
      message: `The signing key ${key} is in the folder of the audit: whoever can read the audit may be able to sign. Move it to another folder.`,
    })
  if (existsSync(key) && (statSync(key).mode & 0o077) !== 0)
    problems.push({
      code: 'key_readable',
      message: `The signing key ${key} can be read by other accounts. Run: chmod 600 ${key}`,
    })
  return problems
}

/** Returns the folder of a file, without links, as far as it exists. */
function realFolder(file: string): string {
  const folder = dirname(resolve(file))
  try {
    return realpathSync(folder)
  } catch {
    return folder
  }
}

/** Returns the secret in a file. It is made at first use, whole or not at all, by whichever process is first. */
export function secretAt(path: string, make: () => string): string {
  if (!existsSync(path)) {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    const draft = `${path}.${randomUUID()}`
    writeFileSync(draft, make(), { flag: 'wx', mode: 0o600, flush: true })
    try {
      linkSync(draft, path)
    } catch (error) {
      if (errnoOf(error) !== 'EEXIST') throw error
    } finally {
      rmSync(draft)
    }
  }
  return readFileSync(path, 'utf8')
}
