import { messageOf } from '@toolgate/values'
import type { NotificationsBody, ReceiverRow, ServerRow } from '@toolgate/gateway'
import { createApi } from '../client.ts'
import { findTarget, type TargetOptions } from '../target.ts'
import { CliError } from '../exit.ts'
import type { Io } from '../io.ts'
import { readyText } from '../notes.ts'
import { gatewayOf, nextCommand, quoted } from '../next-command.ts'

/** The result of one check. */
export interface Finding {
  readonly level: 'ok' | 'warn' | 'error'
  readonly about: string
  readonly text: string
  /** The solution: a command, if there is one. */
  readonly mend?: string
}

const ASK_MS = 2_000

/**
 * Returns the problems of a gateway that runs elsewhere. `undefined`: the user named none, and the usual address has
 * none.
 */
export async function checkGateway(
  options: TargetOptions,
  io: Pick<Io, 'env' | 'stderr'>,
): Promise<readonly Finding[] | undefined> {
  const target = { ...findTarget({ ...options, json: true }, io), timeoutMs: ASK_MS }
  const { url } = target
  if (!(await isHealthy(url))) {
    const isNamed = options.url !== undefined || options.key !== undefined || Boolean(io.env['TOOLGATE_URL'])
    if (!isNamed) return undefined
    return [
      { level: 'error', about: url, text: 'no gateway answers there', mend: nextCommand('serve --config <file>') },
    ]
  }
  const runs: Finding = { level: 'ok', about: url, text: 'a gateway runs there' }
  try {
    const api = createApi(target)
    const { servers } = await api.tools({ caller: '{}' })
    // A gateway of an earlier version has no receivers.
    const { receivers = [] }: Partial<NotificationsBody> = await api.notifications().catch(() => ({}))
    return [
      runs,
      ...servers.map((row) => describeServer(row, options)),
      ...receivers.map((row) => describeReceiver(row, options)),
    ]
  } catch (error) {
    const mend = error instanceof CliError && error.exit === 'key' ? 'export TOOLGATE_KEY=<a console key>' : undefined
    return [runs, { level: 'warn', about: url, text: messageOf(error), ...(mend && { mend }) }]
  }
}

/** Whether a gateway is healthy. The request has no key. */
export async function isHealthy(url: string): Promise<boolean> {
  const body = await fetch(`${url}/healthz`, { redirect: 'error', signal: AbortSignal.timeout(ASK_MS) }).then(
    (response) => (response.ok ? response.text() : ''),
    () => '',
  )
  return body.replaceAll(/\s/g, '').startsWith('{"status":"ok"')
}

function describeServer(row: ServerRow, options: TargetOptions): Finding {
  const { name, status, reason } = row
  const about = `server ${name}`
  const logs = nextCommand(`logs ${quoted(name)}`, gatewayOf(options))
  if (status === 'ready') return { level: 'ok', about, text: readyText(row) }
  if (status === 'starting') {
    const why = reason === undefined ? '' : `: ${reason}`
    const mend = `${logs}; for clients that list only once: servers.${name}.waitForStart: true`
    return { level: 'warn', about, text: `it is still starting${why}`, mend }
  }
  return { level: 'error', about, text: reason ?? status, mend: logs }
}

function describeReceiver({ name, failing, waiting }: ReceiverRow, options: TargetOptions): Finding {
  const about = `receiver ${name}`
  if (!failing) return { level: 'ok', about, text: 'it takes notifications of approvals' }
  const text = `it takes no notifications since ${failing.since}: ${failing.why}; ${waiting} wait`
  return { level: 'warn', about, text, mend: nextCommand(`notify test ${name}`, gatewayOf(options)) }
}
