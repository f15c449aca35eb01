import { randomUUID } from 'node:crypto'
import { existsSync, linkSync, mkdirSync, readFileSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { errnoOf } from '@toolgate/values'

/** The path of checkpoints, if one is configured. */
interface GivenPlace {
  readonly path?: string | undefined
}

/** The problems that an audit's checkpoints may have. Calls are still recorded. */
export type EvidenceProblemCode =
  | 'checkpoints_missing'
  | 'checkpoints_failing'
  | 'checkpoints_together'
  | 'key_together'
  | 'key_in_database'
  | 'key_readable'
  | 'witness_failing'

export interface EvidenceProblem {
  readonly code: EvidenceProblemCode
  /** Sentences about the problem and its solution. */
  readonly message: string
}

/** The evidence for an audit in addition to its own chain. */
export interface AuditEvidence {
  /** The checkpoints. Absent if they are switched off. */
  readonly checkpoints?: {
    readonly path: string
    /** The number of the last record that a checkpoint has signed, or 0 for none. */
    readonly signedSeq: number
    readonly signedAt?: string
  }
  readonly problems: readonly EvidenceProblem[]
}

/**
 * Returns the path of an audit's checkpoints: the configured one, else one in a `checkpoints` folder beside the audit.
 * If that file is missing and an earlier version's `<audit>.checkpoints` exists, it is the earlier one.
 */
export function checkpointsPath(auditPath: string, { path }: GivenPlace = {}): string {
  if (path !== undefined) return resolve(path)
  const audit = resolve(auditPath)
  const apart = join(dirname(audit), 'checkpoints', `${basename(audit)}.checkpoints`)
  const together = `${audit}.checkpoints`
  return !existsSync(apart) && existsSync(together) ? together : apart
}

/** Returns the path of the private key that signs these checkpoints, for an audit without a configured key. */
export function privateKeyOf(checkpoints: string): string {
  return `${checkpoints}.key`
}

/** Returns the path of the key for hashes of inputs, beside the signing key, for an audit without a configured one. */
export function inputKeyOf(checkpoints: string): string {
  return `${checkpoints}.inputs.key`
}

/**
 * Returns the problems with the paths of an audit, its checkpoints and its key. Opens no file: they need not exist.
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

/** Returns the folder of a file, with links resolved if it exists. */
function realFolder(file: string): string {
  const folder = dirname(resolve(file))
  try {
    return realpathSync(folder)
  } catch {
    return folder
  }
}

/** Returns the secret in a file. The first process creates the file in one step. */
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
