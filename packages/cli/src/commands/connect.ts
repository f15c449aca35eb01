import { existsSync } from 'node:fs'
import path from 'node:path'
import { backupPath, applyChanges, undoLast } from '../clients/undo.ts'
import { findClientFile, hostOf, readClientFile, withEntries } from '../clients/client-file.ts'
import { type EntryOptions, gatewayEntry } from '../clients/gateway-entry.ts'
import type { ExitName } from '../exit.ts'
import { type Io, painter, printable, printJson, printLine } from '../io.ts'
import { nextCommand, quoted } from '../next-command.ts'

export interface ConnectCommandOptions extends EntryOptions {
  readonly name: string
  readonly project?: boolean
  readonly local?: boolean
  readonly file?: string
  readonly dryRun?: boolean
  readonly undo?: boolean
  readonly json?: boolean
}

/** `toolgate connect <client>`: writes the gateway into the client's file. The earlier file is kept. */
export async function connectCommand(name: string, options: ConnectCommandOptions, io: Io): Promise<ExitName> {
  const host = hostOf(io.env)
  const { client, file } = findClientFile(name, options, host)
  if (options.undo) return undoCommand(file, options, io)
  const entry = gatewayEntry(client, options)
  const opened = readClientFile(client, file, options.local ? host.cwd : undefined)
  const after = withEntries(opened, new Map([[options.name, entry.value]]))
  if (!options.dryRun) applyChanges(file, `toolgate connect ${name}`, [{ file, before: opened.text, after }])
  if (options.json) {
    printJson(io.stdout, { client: client.id, file, name: options.name, entry: entry.value, written: !options.dryRun })
    return 'ok'
  }
  const paint = painter(io.stdout, io.env)
  const did = options.dryRun ? paint('yellow', 'would write') : paint('green', 'wrote')
  printLine(io.stdout, `${did}  "${printable(options.name)}" in ${printable(file)}: ${printable(entry.does)}.`)
  if (entry.hasKey) printLine(io.stdout, '  The key is in that file in plain text: whoever reads it is this caller.')
  if (entry.hasKey && (options.project || file.startsWith(path.join(host.cwd, path.sep))))
    printLine(
      io.stdout,
      '  Do not commit it. With --key-env TOOLGATE_KEY the client reads the key from its environment.',
    )
  if (options.dryRun) return 'ok'
  printLine(io.stdout, `  ${client.restart}`)
  printLine(
    io.stdout,
    `  To take it back: ${undoOf(name, options)}. The file as it was, with its secrets, for your eyes only: ${printable(backupPath(file))}`,
  )
  return 'ok'
}

/** Returns the command that takes a change of a client's file back. It names the same file. */
function undoOf(name: string, { file, project, local }: ConnectCommandOptions): string {
  const which = `${project ? ' --project' : ''}${local ? ' --local' : ''}`
  return nextCommand(`connect ${quoted(name)} --undo${which}`, { file })
}

/** Reverts the last `import` or `connect`. */
export function undoCommand(file: string, { json }: { readonly json?: boolean }, io: Io): ExitName {
  const restored = undoLast(file)
  if (json) printJson(io.stdout, { restored })
  else
    for (const one of restored) {
      const word = existsSync(one) ? 'restored' : 'removed'
      printLine(io.stdout, `${painter(io.stdout, io.env)('green', word)}  ${printable(one)}`)
    }
  return 'ok'
}
