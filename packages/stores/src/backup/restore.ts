import { chmodSync, constants, copyFileSync, existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { ToolgateError } from '@toolgate/core'
import { messageOf } from '@toolgate/values'
import { boxesBeside } from '../input-boxes.ts'
import { closedFiles } from '../jsonl/log-files.ts'
import { openJsonlAudit } from '../jsonl.ts'
import { lockExclusively } from '../locks.ts'
import { openSqliteAudit } from '../sqlite.ts'
import { openSqliteStores } from '../state/open-stores.ts'
import { loseHistories } from '../state/lost-histories.ts'
import { findFileProblem } from '../store-file.ts'
import {
  type AuditPlace,
  type BackupManifest,
  type BackupRole,
  checkpointsOf,
  evidenceOf,
  type GatewayFiles,
} from './backup.ts'

/** Returns the files that a restore would replace. */
export function filesInPlace(files: GatewayFiles): readonly string[] {
  const { config, others = [], audit, state } = files
  const records = audit
    ? [audit.path, boxesBeside(audit.path), ...closedFiles(audit.path).map(({ path }) => path), ...evidenceOf(audit)]
    : []
  return [config, ...others, ...records, ...(state === undefined ? [] : [state])].filter((file) => existsSync(file))
}

/**
 * Checks that no gateway has these files open. Merges each database's log into its file.
 *
 * @throws {ToolgateError} `state_unavailable` if a gateway has one open
 */
export function checkUnused({ audit, state }: GatewayFiles): void {
  if (audit?.store === 'jsonl' && existsSync(`${audit.path}.lock`)) {
    try {
      lockExclusively(audit.path)()
    } catch {
      throw inUse(audit.path)
    }
  }
  const records = audit?.store === 'sqlite' ? audit.path : audit && boxesBeside(audit.path)
  for (const path of [records, state]) if (path !== undefined && existsSync(path)) checkDatabase(path)
}

/** Checks that no other connection has the database open: only the last connection can leave WAL mode. */
function checkDatabase(path: string): void {
  const db = new DatabaseSync(path, { timeout: 0 })
  try {
    db.exec('PRAGMA journal_mode = DELETE')
  } catch (error) {
    // A file that is not a database is moved aside unchanged.
    if (/locked|busy/i.test(messageOf(error))) throw inUse(path)
  } finally {
    db.close()
  }
}

function inUse(path: string): ToolgateError {
  return new ToolgateError('state_unavailable', `A gateway has ${path} open: stop it first.`)
}

/** Renames files to `<name>.before-restore-<stamp>`, including the log of a damaged database. Returns the new paths. */
export function moveAside(paths: readonly string[], stamp: string): readonly string[] {
  return paths.map((path) => {
    const aside = `${path}.before-restore-${stamp}`
    renameSync(path, aside)
    if (existsSync(`${path}-wal`)) renameSync(`${path}-wal`, `${aside}-wal`)
    for (const end of ['-shm', '.openers', '.lock']) rmSync(path + end, { force: true })
    return aside
  })
}

/** A file of a backup, copied beside its final path. */
export interface Draft {
  readonly role: BackupRole
  readonly draft: string
  readonly place: string
}

/**
 * Copies the files of a backup beside their final paths. After an error, such as a full disk, no copy is left.
 *
 * @param replaced the files that the restore may replace
 * @throws {ToolgateError} `state_unavailable` if another file has one of these paths, because anyone can write the
 * names in a backup
 */
export function draftFiles(
  folder: string,
  { files }: BackupManifest,
  to: GatewayFiles,
  replaced: readonly string[],
): readonly Draft[] {
  const drafts = files.flatMap(({ role, name }) => {
    const place = placeOf(role, name, to)
    if (place === undefined) return []
    if (existsSync(place) && !replaced.includes(place))
      throw new ToolgateError(
        'state_unavailable',
        `The backup has a file ${role}/${name}, and ${place} is no such file.`,
      )
    return [{ role, from: join(folder, role, name), draft: `${place}.restoring`, place }]
  })
  if (new Set(drafts.map(({ place }) => place)).size < drafts.length)
    throw new ToolgateError('state_unavailable', `The backup ${folder} has two files for one place.`)
  try {
    for (const { role, from, draft, place } of drafts) {
      mkdirSync(dirname(draft), { recursive: true, ...(role === 'evidence' ? { mode: 0o700 } : {}) })
      rmSync(draft, { force: true })
      copyFileSync(from, draft, constants.COPYFILE_EXCL)
      chmodSync(draft, 0o600)
      const isRecords = role === 'audit' && place !== (to.audit && boxesBeside(to.audit.path))
      if (role === 'state' || isRecords) checkReadable(draft, role, role === 'state' ? 'sqlite' : to.audit?.store)
    }
  } catch (error) {
    for (const { draft } of drafts) rmSync(draft, { force: true })
    throw error
  }
  return drafts
}

/** Checks that this version can open a copied file. */
function checkReadable(draft: string, role: 'state' | 'audit', store: AuditPlace['store'] = 'sqlite'): void {
  const problem = findFileProblem(draft, role, store)
  for (const end of ['-wal', '-shm']) rmSync(draft + end, { force: true })
  if (problem !== undefined) throw new ToolgateError('state_unavailable', `The backup's ${role}: ${problem}`)
}

/** Renames copies to their final paths. */
export function placeFiles(drafts: readonly Draft[]): void {
  for (const { draft, place } of drafts) renameSync(draft, place)
}

/** Returns the final path of a file. Names of an audit's files begin with the audit's name, which may differ here. */
function placeOf(
  role: BackupRole,
  name: string,
  { config, others = [], audit, state }: GatewayFiles,
): string | undefined {
  if (role === 'config') return config
  if (role === 'other') return others.find((other) => basename(other) === name)
  if (role === 'state') return state
  if (audit === undefined) return undefined
  return role === 'audit' ? join(dirname(audit.path), name) : join(dirname(checkpointsOf(audit)), name)
}

export interface RestoredState {
  /** The number of approvals that the audit shows as used. */
  readonly used: number
  /** The number of approvals that were waiting or approved, and no longer are. */
  readonly revoked: number
  /** The number of grants that were live, and no longer are. */
  readonly grants: number
}

const BY = 'toolgate restore'
const OPEN = "status IN ('pending', 'approved')"

/**
 * Makes the restored state safe to use: an approval that was used after the backup must not be used again.
 *
 * Approvals that the audit shows as used become `used`. Open ones and live grants end unless you keep them, because
 * they may have been used after the backup. Rounds of calls that wait for input end for the same reason. The history of
 * runs after the backup is lost, so rules that read it use their strictest answer.
 */
export async function settleState(
  files: GatewayFiles,
  { nowMs, keepApprovals, reason }: { nowMs: number; keepApprovals: boolean; reason: string },
): Promise<RestoredState> {
  if (files.state === undefined || !existsSync(files.state)) return { used: 0, revoked: 0, grants: 0 }
  // This upgrades a file of an earlier version.
  openSqliteStores({ path: files.state }).close()
  const db = new DatabaseSync(files.state, { timeout: 5000 })
  try {
    const open = new Set(
      db
        .prepare(`SELECT id FROM approvals WHERE ${OPEN}`)
        .all()
        .map(({ id }) => String(id)),
    )
    const used = await usedIn(files, open)
    db.exec('BEGIN IMMEDIATE')
    const consume = db.prepare(`UPDATE approvals SET status = 'consumed' WHERE id = ?`)
    for (const id of used) consume.run(id)
    const verdict = `decided_at = coalesce(decided_at, ?), decided_by = ?, reason = ? WHERE status`
    let revoked = 0
    if (!keepApprovals)
      for (const [from, to] of [
        ['pending', 'rejected'],
        ['approved', 'revoked'],
      ])
        revoked += Number(
          db.prepare(`UPDATE approvals SET status = '${to}', ${verdict} = '${from}'`).run(nowMs, BY, reason).changes,
        )
    const revocation = JSON.stringify({ by: BY, atMs: nowMs, reason })
    const endGrants = `UPDATE grants SET status = 'revoked', revocation = ? WHERE status = 'live'`
    const grants = keepApprovals ? 0 : Number(db.prepare(endGrants).run(revocation).changes)
    const rounds = Buffer.from('gateway/open-states/')
    db.prepare('DELETE FROM state WHERE key >= ? AND key < ?').run(rounds, Buffer.concat([rounds, Buffer.from([0xff])]))
    loseHistories(db, nowMs)
    db.exec('DELETE FROM leases; DELETE FROM lease_waiters; COMMIT')
    return { used: used.size, revoked, grants }
  } finally {
    db.close()
  }
}

/** Returns the approvals that calls in the audit have used. */
async function usedIn({ audit }: GatewayFiles, open: ReadonlySet<string>): Promise<ReadonlySet<string>> {
  const used = new Set<string>()
  if (audit === undefined || open.size === 0) return used
  const reader = (audit.store === 'sqlite' ? openSqliteAudit : openJsonlAudit)({ path: audit.path, readOnly: true })
  try {
    for await (const { approval_id: id } of reader.exportRecords({ event: 'tool_call' }))
      if (id !== undefined && open.has(id)) used.add(id)
  } finally {
    await reader.close()
  }
  return used
}
