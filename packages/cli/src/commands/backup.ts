import path from 'node:path'
import { loadConfig } from '@toolgate/gateway'
import type { ExitName } from '../exit.ts'
import { type Io, painter, printable, printJson, printLine } from '../io.ts'
import { gatewayFiles } from '../project/gateway-files.ts'
import { count } from '../render.ts'

export interface BackupOptions {
  readonly config: string
  readonly json?: boolean
}

/** `toolgate backup`: copies a gateway's files into a new folder, even while it runs. */
export async function backupCommand(folder: string, options: BackupOptions, io: Io): Promise<ExitName> {
  const { makeBackup } = await import('@toolgate/stores/backup')
  const config = loadConfig(options.config, { env: io.env, packagesFrom: [import.meta.filename] })
  const to = path.resolve(folder)
  const manifest = await makeBackup(gatewayFiles(config, path.resolve(options.config)), to, Date.now())
  const { keyFile } = config.audit.checkpoints || {}
  const left = [
    ...(keyFile === undefined ? [] : [`the configured key ${keyFile}`]),
    ...(config.stores === undefined ? [] : ['what is in Postgres and Redis: use pg_dump']),
  ]
  if (options.json) {
    printJson(io.stdout, { folder: to, ...manifest, leftOut: left })
    return 'ok'
  }
  const { files, audit } = manifest
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0)
  printLine(
    io.stdout,
    `${painter(io.stdout, io.env)('green', 'ok')}  ${count(files.length, 'file')}, ${bytes} bytes in ${printable(to)}`,
  )
  if (audit)
    printLine(io.stdout, `The audit verifies up to record ${audit.lastSeq}; checkpoints sign up to ${audit.signedSeq}.`)
  printLine(
    io.stdout,
    'It holds secrets: keys, the signing key, connections and inputs. Only you can read it; keep it so.',
  )
  for (const file of left) printLine(io.stdout, `Not in it: ${printable(file)}.`)
  printLine(io.stdout, 'Not in it: variables of the environment, and files and commands that the configuration names.')
  return 'ok'
}
