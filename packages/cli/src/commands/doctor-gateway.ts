import { messageOf } from '@toolgate/values'
import type { ServerRow } from '@toolgate/gateway'
import { createApi, findTarget, type TargetOptions } from '../client.ts'
import { CliError } from '../exit.ts'
import type { Io } from '../io.ts'
import { count } from '../render.ts'

/** What one check found. */
export interface Finding {
  readonly level: 'ok' | 'warn' | 'error'
  readonly about: string
  readonly text: string
  /** What mends it: a command, where there is one. */
  readonly mend?: string
}

const ASK_MS = 2_000

/** Says what is wrong with a gateway that runs elsewhere. `undefined`: none was named, and none is at the usual address. */
export async function checkGateway(
  options: TargetOptions,
  { env }: Pick<Io, 'env'>,
): Promise<readonly Finding[] | undefined> {
  const target = { ...findTarget(options, env), timeoutMs: ASK_MS }
  const { url } = target
  if (!(await isHealthy(url))) {
    const isNamed = options.url !== undefined || options.key !== undefined || Boolean(env['TOOLGATE_URL'])
    if (!isNamed) return undefined
    return [{ level: 'error', about: url, text: 'no gateway answers there', mend: 'toolgate serve --config <file>' }]
  }
  const runs: Finding = { level: 'ok', about: url, text: 'a gateway runs there' }
  try {
    const { servers } = await createApi(target).tools({ caller: '{}' })
    return [runs, ...servers.map(describeServer)]
  } catch (error) {
    const mend = error instanceof CliError && error.exit === 'key' ? 'export TOOLGATE_KEY=<a console key>' : undefined
    return [runs, { level: 'warn', about: url, text: messageOf(error), ...(mend && { mend }) }]
  }
}

/** Asked without a key. */
export async function isHealthy(url: string): Promise<boolean> {
  const body = await fetch(`${url}/healthz`, { redirect: 'error', signal: AbortSignal.timeout(ASK_MS) }).then(
    (response) => (response.ok ? response.text() : ''),
    () => '',
  )
  return body.replaceAll(/\s/g, '').startsWith('{"status":"ok"')
}

function describeServer({ name, status, reason, toolCount }: ServerRow): Finding {
  const about = `server ${name}`
  if (status === 'ready') return { level: 'ok', about, text: count(toolCount, 'tool') }
  return { level: 'error', about, text: reason ?? status, mend: `toolgate logs ${name}` }
}
