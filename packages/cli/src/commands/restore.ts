import { constants, copyFileSync, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import path from 'node:path'
import { type GatewayConfig, loadConfig, openAudit } from '@toolgate/gateway'
import type { BackupManifest, GatewayFiles, RestoredState } from '@toolgate/stores/backup'
import { CliError, type ExitName } from '../exit.ts'
import { type Io, painter, printable, printJson, printLine } from '../io.ts'
import { gatewayFiles } from '../project/gateway-files.ts'
import { count } from '../render.ts'
import { nextCommand } from '../next-command.ts'

export interface RestoreOptions {
  readonly config: string
  readonly force?: boolean
  readonly keepApprovals?: boolean
  readonly json?: boolean
}

/** `toolgate restore`: replaces a gateway's files with a backup. Its exit code is the status of the restored audit. */
export async function restoreCommand(folder: string, options: RestoreOptions, io: Io): Promise<ExitName> {
  const { readBackup, checkUnused, draftFiles, filesInPlace, moveAside, placeFiles, settleState } =
    await import('@toolgate/stores/backup')
  const { verifyAudit } = await import('@toolgate/stores/verify')
  const from = path.resolve(folder)
  const manifest = await readBackup(from)
  const file = path.resolve(options.config)
  const config = readRestored(from, manifest, file, io)
  const files = gatewayFiles(config, file)
  checkUnused(files)
  const there = filesInPlace(files).filter((one) => one !== file || !isSame(from, manifest, file))
  if (there.length > 0 && options.force !== true) throw alreadyThere(there)
  const drafts = draftFiles(from, manifest, files, [...there, file])
  const aside = moveAside(there, new Date().toISOString().replaceAll(/[-:]|\.\d+/g, ''))
  const states = drafts.filter(({ role }) => role === 'state')
  placeFiles(drafts.filter((one) => !states.includes(one)))
  const nowMs = Date.now()
  const reason = `restored from a backup of ${manifest.madeAt}`
  // The state is settled before it is in place, because a gateway that starts after a crash must not find reusable
  // approvals.
  const settled = { ...files, state: states[0]?.draft }
  const state = await settleState(settled, { nowMs, keepApprovals: options.keepApprovals === true, reason })
  placeFiles(states)
  await record(config, `${reason}; ${describeState(state)}`, nowMs)
  const { audit } = files
  const status = audit && (await verifyAudit({ ...placesOf(audit), mustBeSigned: audit.hasCheckpoints })).status
  const warnings = warningsOf(manifest, state, options)
  if (options.json)
    printJson(io.stdout, { from, madeAt: manifest.madeAt, files, aside, ...state, audit: status, warnings })
  else print({ manifest, aside, status, warnings }, io)
  return status ?? 'ok'
}

function placesOf({ path: audit, checkpoints }: NonNullable<GatewayFiles['audit']>) {
  return { path: audit, ...(checkpoints === undefined ? {} : { checkpoints }) }
}

/** Returns the backup's configuration, read as if it were in its final place. */
function readRestored(from: string, { files }: BackupManifest, file: string, { env }: Io): GatewayConfig {
  const name = files.find(({ role }) => role === 'config')?.name
  if (name === undefined) throw new CliError('usage', 'The backup has no configuration.')
  const draft = `${file}.restoring`
  mkdirSync(path.dirname(file), { recursive: true })
  rmSync(draft, { force: true })
  copyFileSync(path.join(from, 'config', name), draft, constants.COPYFILE_EXCL)
  try {
    return loadConfig(draft, { env, packagesFrom: [import.meta.filename] })
  } finally {
    rmSync(draft)
  }
}

function isSame(from: string, { files }: BackupManifest, file: string): boolean {
  const name = files.find(({ role }) => role === 'config')?.name ?? ''
  return existsSync(file) && readFileSync(file).equals(readFileSync(path.join(from, 'config', name)))
}

function alreadyThere(files: readonly string[]): CliError {
  return new CliError('usage', `There are files already: ${files.map(printable).join(', ')}.`, {
    hint: 'With --force they are moved aside, to <name>.before-restore-<time>.',
  })
}

/** Opens the audit once, which also ends the calls that were running at the time of the backup. */
async function record({ audit: config }: GatewayConfig, detail: string, wallMs: number): Promise<void> {
  if (config.store === 'memory') return
  const audit = await openAudit(config)
  try {
    await audit.write({ event: 'audit_restored', detail, wallMs, policy_revision: 0, catalog_revision: 0 })
  } finally {
    await audit.close()
  }
}

function describeState({ used, revoked, grants }: RestoredState): string {
  const ended = grants === 0 ? '' : `, ${count(grants, 'grant')} revoked`
  return `${count(revoked, 'open approval')} revoked, ${count(used, 'approval')} found used${ended}`
}

function warningsOf(
  { madeAt }: BackupManifest,
  state: RestoredState,
  { keepApprovals, config }: RestoreOptions,
): readonly string[] {
  return [
    keepApprovals === true
      ? `Approvals that were open at ${madeAt} still are. One that was used since can be used again.`
      : `${describeState(state)}: they may have been used after the backup.`,
    'Limits count as they did then: uses since are forgotten.',
    `Keys that were revoked since are valid again, and halts that were set since are gone. See: ${nextCommand('keys', { config })}, ${nextCommand('halts', { config })}`,
    'Connections that users ended since are there again, with their tokens of then. The console lists and ends them.',
    'The audit ends at the backup. Checkpoints that you shipped elsewhere since show that it was cut back.',
  ]
}

interface Restored {
  readonly manifest: BackupManifest
  readonly aside: readonly string[]
  readonly status: ExitName | undefined
  readonly warnings: readonly string[]
}

function print({ manifest, aside, status, warnings }: Restored, io: Io): void {
  const paint = painter(io.stdout, io.env)
  printLine(io.stdout, `${paint('green', 'ok')}  ${count(manifest.files.length, 'file')} of ${manifest.madeAt}`)
  if (status !== undefined) printLine(io.stdout, `The audit: ${status}`)
  for (const file of aside) printLine(io.stdout, `Kept aside: ${printable(file)}`)
  for (const text of warnings) printLine(io.stderr, `${painter(io.stderr, io.env)('yellow', 'warn')}  ${text}`)
}
