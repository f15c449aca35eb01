import { createApi } from '../client.ts'
import { findTarget, type TargetOptions } from '../target.ts'
import type { ExitName } from '../exit.ts'
import { type Io, printable, printJson, printLine } from '../io.ts'
import { renderTable } from '../table.ts'
import { gatewayOf, nextCommand, quoted } from '../next-command.ts'

export interface RevisionsOptions extends TargetOptions {
  readonly json?: boolean
}

export interface RestorePolicyOptions extends RevisionsOptions {
  readonly dryRun?: boolean
  readonly preview?: string
}

/** `toolgate policy revisions`: prints the policies that were in force, the latest first. */
export async function revisionsCommand(options: RevisionsOptions, io: Io): Promise<ExitName> {
  const body = await createApi(findTarget(options, io)).policyRevisions()
  if (options.json) {
    printJson(io.stdout, body)
    return 'ok'
  }
  const rows = body.revisions.map(({ revision, at, by, through, restores, isInForce }) => [
    String(revision),
    new Date(at).toISOString(),
    printable(by ?? ''),
    restores === undefined ? HOW[through] : `restored revision ${restores}`,
    isInForce ? 'in force' : '',
  ])
  printLine(io.stdout, renderTable(['REVISION', 'SINCE', 'BY', 'HOW', ''], rows, io.stdout))
  if (body.restored)
    printLine(
      io.stdout,
      `A restored policy applies until that of the file changes, or until: ${nextCommand('policy release', gatewayOf(options))}`,
    )
  return 'ok'
}

const HOW = {
  start: 'start',
  signal: 'reload by signal',
  api: 'reload',
  host: 'reload by the host',
  publication: 'published',
  watch: 'watched file',
  restore: 'restored',
} as const

/** `toolgate policy show <revision>`: prints the text of a policy that was in force. */
export async function showRevisionCommand(revision: string, options: RevisionsOptions, io: Io): Promise<ExitName> {
  const body = await createApi(findTarget(options, io)).policyRevision(revision)
  if (options.json) printJson(io.stdout, body)
  else for (const line of body.text.split('\n')) printLine(io.stdout, printable(line))
  return 'ok'
}

/** `toolgate policy restore <revision>`: goes back to an earlier policy, and prints the difference. */
export async function restoreCommand(revision: string, options: RestorePolicyOptions, io: Io): Promise<ExitName> {
  const { dryRun, preview } = options
  const reload = await createApi(findTarget(options, io)).restorePolicy(revision, {
    dryRun: dryRun === true,
    ...(preview !== undefined && { preview }),
  })
  if (options.json) {
    printJson(io.stdout, reload)
    return 'ok'
  }
  for (const line of reload.text) printLine(io.stdout, printable(line))
  if (reload.isApplied) printLine(io.stdout, 'It applies until the policy of the file changes.')
  else if (reload.preview !== undefined)
    printLine(
      io.stdout,
      `to apply exactly this: ${nextCommand(`policy restore ${quoted(revision)} --preview ${reload.preview}`, gatewayOf(options))}`,
    )
  return 'ok'
}

/** `toolgate policy release`: applies the policy of the file again. */
export async function releasePolicyCommand(options: RevisionsOptions, io: Io): Promise<ExitName> {
  const reload = await createApi(findTarget(options, io)).releasePolicy()
  if (options.json) printJson(io.stdout, reload)
  else for (const line of reload.text) printLine(io.stdout, printable(line))
  return 'ok'
}
