import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type GatewayConfig,
  type GatewayOptions,
  type LogLine,
  type RunningGateway,
  startGateway,
  type ToolsBody,
} from '@toolgate/gateway'
import { type Answer, send } from './http.ts'
import { CALLERS, KEYS, type Who } from './keys.ts'
import { openapi } from './openapi.ts'
import { type Era, type Params, type RpcAnswer, toMessage } from './rpc.ts'

/** A gateway of a test's own, on a free port, and what tests ask of it. */
export interface TestGateway extends RunningGateway {
  readonly mcpUrl: string
  readonly log: readonly LogLine[]
  /** Sends a correct request of an era. */
  ask(who: Who, era: Era, method: string, params?: Params, more?: AskOptions): Promise<Answer>
  call(who: Who, era: Era, name: string, args?: unknown): Promise<RpcAnswer>
  list(who: Who, era: Era): Promise<readonly string[]>
  /** Throws for an answer that `openapi.json` does not describe. */
  api(path: string, options?: ApiOptions): Promise<ApiAnswer>
  tools(as: Who): Promise<ToolsBody>
}

export interface AskOptions {
  readonly id?: string | number
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
}

export interface ApiOptions {
  readonly key?: string
  readonly method?: string
  readonly body?: object
}

export interface ApiAnswer {
  readonly status: number
  readonly body: unknown
}

/** Starts a gateway and waits until its servers have answered or failed their first start. */
export async function startTestGateway(...given: Parameters<typeof openTestGateway>): Promise<TestGateway> {
  const gateway = await openTestGateway(...given)
  await gateway.ready
  return gateway
}

/** Starts a gateway, which answers while its servers are starting. */
export async function openTestGateway(
  given: Partial<GatewayConfig>,
  /** What the file says at a reload. */
  reread?: () => Partial<GatewayConfig>,
  clock?: GatewayOptions['clock'],
): Promise<TestGateway> {
  const log: LogLine[] = []
  const config: GatewayConfig = {
    file: '/test/toolgate.yaml',
    listen: { host: '127.0.0.1', port: 0 },
    servers: [],
    callers: CALLERS,
    groups: [],
    policy: [{ allow: ['*'] }],
    limits: [],
    audit: { store: 'memory', mode: 'batched' },
    drainMs: 250,
    ...given,
  }
  const read = reread && (() => ({ ...config, ...reread() }))
  const gateway = await startGateway(config, {
    log: (line) => log.push(line),
    probeEveryMs: 50,
    ...(read && { read }),
    ...(clock && { clock }),
  })
  const mcpUrl = `${gateway.url}/mcp`

  const ask: TestGateway['ask'] = (who, era, method, params, { id, headers = {}, signal } = {}) => {
    const message = toMessage(era, method, params, id)
    return send(mcpUrl, {
      headers: { ...message.headers, authorization: `Bearer ${KEYS[who]}`, ...headers },
      body: JSON.stringify(message.body),
      ...(signal ? { signal } : {}),
    })
  }
  const api: TestGateway['api'] = async (path, { key = KEYS.console, method = 'GET', body: sent } = {}) => {
    const answer = await send(`${gateway.url}${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, ...(sent ? { 'content-type': 'application/json' } : {}) },
      ...(sent ? { body: JSON.stringify(sent) } : {}),
    })
    const { status } = answer
    const body = answer.json()
    if (path.startsWith('/api/')) openapi.check({ method, path, status, body })
    return { status, body }
  }
  return Object.assign(gateway, {
    mcpUrl,
    log,
    ask,
    api,
    call: async (who: Who, era: Era, name: string, args: unknown = {}) =>
      (await ask(who, era, 'tools/call', { name, arguments: args })).json() as RpcAnswer,
    list: async (who: Who, era: Era) => {
      const { result } = (await ask(who, era, 'tools/list')).json() as RpcAnswer
      return (result?.tools ?? []).map(({ name }) => name)
    },
    tools: async (as: Who) => (await api(`/api/tools?as=${as}`)).body as ToolsBody,
  })
}

/** A folder that is gone after the test. */
export function tempFolder(): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'toolgate-e2e-'))
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) }
}

const STEP_MS = 20

/** Waits until `check` gives something true. A pause of this process counts for one step of the time. */
export async function until<T>(check: () => T | Promise<T>, timeoutMs: number = 30_000): Promise<T> {
  for (let leftMs = timeoutMs; ; leftMs -= STEP_MS) {
    const value = await check()
    if (value) return value
    if (leftMs < 0) throw new Error(`not within ${timeoutMs} ms: ${check.toString()}`)
    await sleep(STEP_MS)
  }
}
