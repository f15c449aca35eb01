import type { ReplicaRowBody, ReplicasBody } from '@toolgate/gateway'
import { createApi } from '../client.ts'
import { findTarget, type TargetOptions } from '../target.ts'
import type { ExitName } from '../exit.ts'
import { type Io, painter, printable, printJson, printLine } from '../io.ts'
import { renderTable } from '../table.ts'

export interface ReplicasOptions extends TargetOptions {
  readonly json?: boolean
}

export interface AcceptReplicasOptions extends ReplicasOptions {
  readonly limits?: boolean
}

/** `toolgate replicas list`: prints the replicas. */
export async function replicasCommand(options: ReplicasOptions, io: Io): Promise<ExitName> {
  print(await createApi(findTarget(options, io)).replicas(), options, io)
  return 'ok'
}

/** `toolgate replicas accept`: accepts a database that has lost changes. */
export async function acceptReplicasCommand({ limits, ...options }: AcceptReplicasOptions, io: Io): Promise<ExitName> {
  print(await createApi(findTarget(options, io)).acceptReplicas(limits === true ? 'limits' : 'database'), options, io)
  return 'ok'
}

function print(body: ReplicasBody, { json }: ReplicasOptions, { stdout, env }: Io): void {
  if (json) return printJson(stdout, body)
  const { self, replicas } = body
  if (!self) return printLine(stdout, 'This gateway shares its stores with no other.')
  const rows = replicas.map((row) => toCells(row).map(printable))
  printLine(stdout, renderTable(HEAD, rows, stdout))
  const paint = painter(stdout, env)
  for (const { id, file } of replicas)
    if (file !== undefined)
      printLine(stdout, paint('yellow', `the file of ${printable(id)} is another one (${printable(file)})`))
  const refusing = replicas.flatMap(({ id, isSelf, isLive, refuses }) =>
    isLive && !isSelf && refuses !== undefined ? [`${id} starts no call: ${refuses}`] : [],
  )
  for (const problem of [
    ...refusing,
    self.reason && `${self.id} starts no call: ${self.reason}`,
    self.limits && `limited calls are refused: ${self.limits}`,
  ])
    if (problem) printLine(stdout, paint('red', printable(problem)))
}

const HEAD = ['REPLICA', 'STATE', 'CONFIGURATION', 'SINCE', 'REVISION', 'LAST RENEWAL', 'VERSION', 'URL']

function toCells(row: ReplicaRowBody): readonly string[] {
  const { id, isSelf, configuration, applied, renewedAt, version, url = '' } = row
  return [
    isSelf ? `${id} (asked)` : id,
    stateOf(row),
    configuration?.id ?? '',
    configuration === undefined ? '' : new Date(configuration.since).toISOString(),
    String(applied),
    new Date(renewedAt).toISOString(),
    version,
    url,
  ]
}

/** Returns the state of a replica. A lost replica starts no calls, because its lease has expired. */
function stateOf({ isLive, isStopping, refuses }: ReplicaRowBody): string {
  if (!isLive) return 'lost'
  if (isStopping) return 'stopping'
  return refuses === undefined ? 'live' : 'refuses'
}
