import { type CatalogSnapshot, formatSnapshot, takeSnapshot } from '@toolgate/change'
import { type GatewayConfig, readConfig } from '@toolgate/gateway'
import { CliError, type ExitName } from '../exit.ts'
import { INSTALLED_FROM } from '../files.ts'
import { painter, printable, printLine } from '../io.ts'
import { writeOutput } from '../new-file.ts'
import { count } from '../render.ts'
import { type ServeDeps, startUnseen } from './serve.ts'

export interface SnapshotOptions {
  readonly config: string
  readonly output?: string
}

/**
 * `toolgate snapshot`: starts the servers of a configuration, and writes their tools and other items as data for tests.
 */
export async function snapshotCommand(
  { config: file, output }: SnapshotOptions,
  { io, start }: Pick<ServeDeps, 'io' | 'start'>,
): Promise<ExitName> {
  const config = await readConfig(file, { env: io.env, packagesFrom: [INSTALLED_FROM] })
  const snapshot = await takeLiveSnapshot(config, start)
  const text = formatSnapshot(snapshot)
  if (output === undefined) {
    io.stdout.write(text)
    return 'ok'
  }
  writeOutput(output, text)
  const made = painter(io.stdout, io.env)('green', 'made')
  printLine(
    io.stdout,
    `${made}  ${printable(output)}  ${count(snapshot.items.length, 'item')} of ${count(config.servers.length, 'server')}`,
  )
  return 'ok'
}

/**
 * Returns the items of a configuration's servers.
 * @throws {CliError} `no` if a server does not start, because tests would lack its tools
 */
export async function takeLiveSnapshot(config: GatewayConfig, start: ServeDeps['start']): Promise<CatalogSnapshot> {
  const gateway = await startUnseen(config, start)
  try {
    await gateway.ready
    const down = gateway.servers().filter(({ status }) => status !== 'ready')
    if (down.length > 0)
      throw new CliError(
        'no',
        `Not all servers have started: ${down.map(({ name, status, reason }) => `${printable(name)} (${printable(reason ?? status)})`).join(', ')}.`,
      )
    return takeSnapshot(gateway.gate.catalog)
  } finally {
    await gateway.close()
  }
}
