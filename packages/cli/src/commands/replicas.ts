import type { ReplicasBody } from '@toolgate/gateway'
import { createApi, findTarget, type TargetOptions } from '../client.ts'
import type { ExitName } from '../exit.ts'
import { type Io, painter, printable, printJson, printLine } from '../io.ts'
import { renderTable } from '../table.ts'

export interface ReplicasOptions extends TargetOptions {
  readonly json?: boolean
}

export interface AcceptReplicasOptions extends ReplicasOptions {
  readonly limits?: boolean
}

/** `toolgate replicas list` */
export async function replicasCommand(options: ReplicasOptions, io: Io): Promise<ExitName> {
  print(await createApi(findTarget(options, io.env)).replicas(), options, io)
  return 'ok'
}

/** `toolgate replicas accept` */
export async function acceptReplicasCommand({ limits, ...options }: AcceptReplicasOptions, io: Io): Promise<ExitName> {
  print(
    await createApi(findTarget(options, io.env)).acceptReplicas(limits === true ? 'limits' : 'database'),
    options,
    io,
  )
  return 'ok'
}

function print(body: ReplicasBody, { json }: ReplicasOptions, { stdout, env }: Io): void {
  if (json) return printJson(stdout, body)
  const { self, replicas } = body
  if (!self) return printLine(stdout, 'This gateway shares its stores with no other.')
  const rows = replicas.map(({ id, url = '', version, applied, isLive, isSelf, renewedAt }) =>
    [
      isSelf ? `${id} (asked)` : id,
      isLive ? 'live' : 'lost',
      String(applied),
      new Date(renewedAt).toISOString(),
      version,
      url,
    ].map(printable),
  )
  printLine(stdout, renderTable(['REPLICA', 'STATE', 'REVISION', 'LAST RENEWAL', 'VERSION', 'URL'], rows, stdout))
  const { configuration, reason, limits } = self
  printLine(stdout, `configuration ${printable(configuration.id)}`)
  const paint = painter(stdout, env)
  if (configuration.isFileOther) printLine(stdout, paint('yellow', `the file of ${printable(self.id)} is another one`))
  for (const problem of [
    reason && `${self.id} starts no call: ${reason}`,
    limits && `limited calls are refused: ${limits}`,
  ])
    if (problem) printLine(stdout, paint('red', printable(problem)))
}
