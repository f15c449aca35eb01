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
  const { snapshot, down } = await takeReadySnapshot(config, start)
  if (down.length > 0) throw new CliError('no', `Not all servers have started: ${down.map(printable).join(', ')}.`)
  return snapshot
}

/** Returns the items of the servers that start, and the others as texts: `name (reason)`. */
export async function takeReadySnapshot(
  config: GatewayConfig,
  start: ServeDeps['start'],
): Promise<{ readonly snapshot: CatalogSnapshot; readonly down: readonly string[] }> {
  const gateway = await startUnseen(config, start)
  try {
    await gateway.ready
    const down = gateway.servers().filter(({ status }) => status !== 'ready')
    return {
      snapshot: takeSnapshot(gateway.gate.catalog),
      down: down.map(({ name, status, reason }) => `${name} (${reason ?? status})`),
    }
  } finally {
    await gateway.close()
  }
}
