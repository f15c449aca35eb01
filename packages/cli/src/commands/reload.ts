import { createApi } from '../client.ts'
import { findTarget, type TargetOptions } from '../target.ts'
import type { ExitName } from '../exit.ts'
import { type Io, printable, printJson, printLine } from '../io.ts'
import { gatewayOf, nextCommand } from '../next-command.ts'

export interface ReloadCommandOptions extends TargetOptions {
  readonly dryRun?: boolean
  readonly publish?: boolean
  readonly force?: boolean
  readonly preview?: string
  readonly json?: boolean
}

/** `toolgate reload`: makes a running gateway read its file again, and prints the difference. */
export async function reloadCommand(
  { dryRun, publish, force, preview, ...options }: ReloadCommandOptions,
  io: Io,
): Promise<ExitName> {
  const reload = await createApi(findTarget(options, io)).reload({
    dryRun: dryRun === true,
    ...(publish === true && { publish }),
    ...(force === true && { force }),
    ...(preview !== undefined && { preview }),
  })
  if (options.json) {
    printJson(io.stdout, reload)
    return 'ok'
  }
  for (const line of reload.text) printLine(io.stdout, printable(line))
  const waits = reload.changes.length > 0 || reload.restartNeeded.length > 0
  if (reload.preview !== undefined && waits)
    printLine(
      io.stdout,
      `to apply exactly this: ${nextCommand(`reload ${publish === true ? '--publish ' : ''}--preview ${reload.preview}`, gatewayOf(options))}`,
    )
  return 'ok'
}
