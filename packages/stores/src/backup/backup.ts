import { createHash } from 'node:crypto'
import {
  chmodSync,
  closeSync,
  constants,
  copyFileSync,
  createReadStream,
  existsSync,
  fdatasyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { backup, DatabaseSync } from 'node:sqlite'
import { pipeline } from 'node:stream/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { ToolgateError } from '@toolgate/core'
import { errnoOf } from '@toolgate/values'
import { isObject, readOwnJson } from '@toolgate/values/json'
import { checkpointsPath, inputKeyOf, privateKeyOf } from '../evidence.ts'
import { publicKeysOf } from '../checkpoint-file.ts'
import { boxesBeside } from '../input-boxes.ts'
import { closedFiles, viewAt } from '../jsonl/log-files.ts'
import { linesForwards } from '../lines.ts'
import { verifyAudit } from '../verify.ts'

/** The files of a gateway. All paths are absolute. */
export interface GatewayFiles {
  /** The gateway's configuration file. */
  readonly config: string
  /** Further files that are copied unchanged, if they exist. */
  readonly others?: readonly string[]
  readonly audit?: AuditPlace | undefined
  /** The gateway's state, in SQLite. */
  readonly state?: string | undefined
}

export interface AuditPlace {
  readonly store: 'sqlite' | 'jsonl'
  readonly path: string
  /** The path of the checkpoints. Absent for the default path. */
  readonly checkpoints?: string | undefined
  readonly hasCheckpoints: boolean
}

const ROLES = ['config', 'other', 'state', 'audit', 'evidence'] as const
export type BackupRole = (typeof ROLES)[number]

export interface BackedUpFile {
  readonly role: BackupRole
  /** The file's name in the folder of its role. */
  readonly name: string
  readonly bytes: number
  readonly sha256: string
}

/** The content of `backup.json`, which describes a backup. */
export interface BackupManifest {
  readonly format: 1
  /** The time of the backup, as RFC 3339. */
  readonly madeAt: string
  /** The number of the last record in the audit, and of the last record that a checkpoint signs. */
  readonly audit?: { readonly lastSeq: number; readonly signedSeq: number }
  readonly files: readonly BackedUpFile[]
}

const MANIFEST = 'backup.json'
const FORMAT = 1
const ALL_PAGES = 2 ** 30
const TRIES = 5
/** The time between tries. A gateway that has just started signs its first checkpoint after a second. */
const RETRY_MS = 500

/**
 * Copies the files of a gateway into a new folder that only its owner can read. The gateway may keep running.
 *
 * The checkpoints come first, then the state, then the audit: so the audit has every use of an approval that the state
 * lacks, and no checkpoint is ahead of the audit. The copy of the audit is verified.
 *
 * @throws {ToolgateError} `audit_invalid` for an audit that does not verify, `audit_unavailable`, `state_unavailable`
 */
export async function makeBackup(files: GatewayFiles, folder: string, madeAtMs: number): Promise<BackupManifest> {
  makeFolder(folder)
  copyPlain(files.config, placeIn(folder, 'config', files.config))
  for (const other of files.others ?? []) if (existsSync(other)) copyPlain(other, placeIn(folder, 'other', other))
  const audit = await copyConsistently(files, folder)
  const copied: BackedUpFile[] = []
  for (const role of ROLES)
    if (existsSync(join(folder, role)))
      for (const name of readdirSync(join(folder, role)).toSorted()) copied.push(await describe(folder, role, name))
  const manifest: BackupManifest = {
    format: FORMAT,
    madeAt: new Date(madeAtMs).toISOString(),
    ...(audit === undefined ? {} : { audit }),
    files: copied,
  }
  // The manifest is written last, because a folder without it is not a backup.
  writeFileSync(join(folder, MANIFEST), `${JSON.stringify(manifest, undefined, 2)}\n`, {
    mode: 0o600,
    flag: 'wx',
    flush: true,
  })
  return manifest
}

function makeFolder(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  if (readdirSync(folder).length > 0)
    throw new ToolgateError('state_unavailable', `The folder ${folder} is not empty: a backup is made in a new one.`)
  chmodSync(folder, 0o700)
}

/** Returns the folder of a role. Each role has its own, because two files may have the same name. */
function placeIn(folder: string, role: BackupRole, file: string): string {
  mkdirSync(join(folder, role), { recursive: true, mode: 0o700 })
  return join(folder, role, basename(file))
}

/**
 * Copies the state and the audit. Verification detects retention or a restart between two copies, and the copy is
 * repeated.
 */
async function copyConsistently(
  { audit, state }: GatewayFiles,
  folder: string,
): Promise<BackupManifest['audit'] | undefined> {
  const copyState = async (): Promise<void> => {
    if (state !== undefined && existsSync(state)) await copyDatabase(state, placeIn(folder, 'state', state))
  }
  if (audit === undefined || !exists(audit)) {
    await copyState()
    return undefined
  }
  const copy = placeIn(folder, 'audit', audit.path)
  const checkpoints = placeIn(folder, 'evidence', checkpointsOf(audit))
  for (let tries = 1; ; tries++) {
    for (const file of evidenceOf(audit)) if (existsSync(file)) copyPlain(file, placeIn(folder, 'evidence', file))
    await copyState()
    try {
      if (audit.store === 'sqlite') await copyDatabase(audit.path, copy)
      else {
        copyLines(audit.path, copy)
        // The inputs are copied after the records, so that no input is missing.
        const boxes = boxesBeside(audit.path)
        if (existsSync(boxes)) await copyDatabase(boxes, boxesBeside(copy))
      }
    } catch (error) {
      // Retention may remove a file during the copy.
      if (errnoOf(error) !== 'ENOENT' || tries === TRIES) throw error
      continue
    }
    const verdict = await verifyAudit({ path: copy, checkpoints, mustBeSigned: audit.hasCheckpoints })
    for (const file of [copy, boxesBeside(copy)])
      for (const end of ['-wal', '-shm']) rmSync(file + end, { force: true })
    const { status, lastSeq, findings } = verdict
    if (status === 'ok' || status === 'torn') return { lastSeq, signedSeq: verdict.checkpoints.lastSeq }
    if (status === 'tampered' || tries === TRIES)
      throw new ToolgateError(
        'audit_invalid',
        `The audit ${audit.path} does not verify: ${findings[0]?.text ?? status} The copy is in ${folder}; it is not a backup. Run: toolgate audit verify`,
      )
    await delay(RETRY_MS)
  }
}

function exists({ path }: AuditPlace): boolean {
  return existsSync(path) || closedFiles(path).length > 0
}

export function checkpointsOf({ path, checkpoints }: AuditPlace): string {
  return checkpointsPath(path, checkpoints === undefined ? {} : { path: checkpoints })
}

/** Returns the files that belong to the records: the checkpoints, and the keys that Toolgate created. */
export function evidenceOf(audit: AuditPlace): readonly string[] {
  const checkpoints = checkpointsOf(audit)
  const keys = [inputKeyOf(checkpoints)]
  return audit.hasCheckpoints ? [checkpoints, publicKeysOf(checkpoints), privateKeyOf(checkpoints), ...keys] : keys
}

function copyPlain(file: string, copy: string): void {
  rmSync(copy, { force: true })
  copyFileSync(file, copy, constants.COPYFILE_EXCL)
  chmodSync(copy, 0o600)
}

/** Copies a database in one step. The copy is consistent even while others write. */
async function copyDatabase(from: string, to: string): Promise<void> {
  rmSync(to, { force: true })
  writeFileSync(to, '', { mode: 0o600, flag: 'wx' })
  const db = new DatabaseSync(from, { readOnly: true, timeout: 5000 })
  try {
    await backup(db, to, { rate: ALL_PAGES })
  } finally {
    db.close()
  }
}

/** Copies the closed files, and the complete lines of the current file. */
function copyLines(path: string, to: string): void {
  rmSync(dirname(to), { recursive: true })
  mkdirSync(dirname(to), { mode: 0o700 })
  const view = viewAt(path)
  try {
    for (const part of view.parts)
      if (part.fd === undefined) copyPlain(part.path, join(dirname(to), basename(part.path)))
      else copyPart(part.fd, part.end ?? 0, to)
  } finally {
    view.close()
  }
}

function copyPart(from: number, end: number, copy: string): void {
  const to = openSync(copy, 'wx', 0o600)
  try {
    for (const lines of linesForwards(from, end)) for (const line of lines) writeSync(to, `${line}\n`)
    fdatasyncSync(to)
  } finally {
    closeSync(to)
  }
}

async function describe(folder: string, role: BackupRole, name: string): Promise<BackedUpFile> {
  const file = join(folder, role, name)
  return { role, name, bytes: statSync(file).size, sha256: await sha256Of(file) }
}

async function sha256Of(file: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(file), hash)
  return hash.digest('hex')
}

/**
 * Reads a backup and compares its files with its manifest.
 *
 * @throws {ToolgateError} `state_unavailable` for a folder that is not a whole backup
 */
export async function readBackup(folder: string): Promise<BackupManifest> {
  const manifest = readManifest(folder)
  for (const { role, name, bytes, sha256 } of manifest.files) {
    const file = join(folder, role, name)
    if (!existsSync(file)) throw notWhole(folder, `its file ${role}/${name} is missing`)
    if (statSync(file).size !== bytes || (await sha256Of(file)) !== sha256)
      throw notWhole(folder, `its file ${role}/${name} was changed`)
  }
  return manifest
}

function readManifest(folder: string): BackupManifest {
  const file = join(folder, MANIFEST)
  if (!existsSync(file)) throw notWhole(folder, `it has no ${MANIFEST}, which is written last`)
  let manifest: unknown
  try {
    manifest = readOwnJson(readFileSync(file, 'utf8'))
  } catch {
    throw notWhole(folder, `its ${MANIFEST} is not JSON`)
  }
  const format = isObject(manifest) ? manifest['format'] : undefined
  if (typeof format === 'number' && format > FORMAT)
    throw notWhole(
      folder,
      `a later version made it, of format ${format}; this one knows ${FORMAT}. Install that version`,
    )
  if (!isManifest(manifest)) throw notWhole(folder, `its ${MANIFEST} does not describe one`)
  return manifest
}

function notWhole(folder: string, why: string): ToolgateError {
  return new ToolgateError('state_unavailable', `${folder} is not a whole backup: ${why}.`)
}

function isManifest(value: unknown): value is BackupManifest {
  if (!isObject(value) || value['format'] !== FORMAT || typeof value['madeAt'] !== 'string') return false
  const { files } = value
  return Array.isArray(files) && files.every(isFile)
}

/** Checks an entry of the manifest. Its name must not lead out of the folder. */
function isFile(value: unknown): value is BackedUpFile {
  if (!isObject(value)) return false
  const { role, name, bytes, sha256 } = value
  return (
    ROLES.some((known) => known === role) &&
    typeof name === 'string' &&
    /^[^/\\]+$/.test(name) &&
    name !== '..' &&
    typeof bytes === 'number' &&
    typeof sha256 === 'string'
  )
}
