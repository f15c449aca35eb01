import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type GatewayConfig, loadConfig } from '@toolgate/gateway'
import { startTestGateway, type TestGateway } from '../gateway.ts'
import { type Answer, send } from '../http.ts'
import { type Era, MODERN, type Params, type RpcAnswer, toMessage } from '../rpc.ts'
import { type Provider, type StandIn, startProvider } from './provider.ts'

const PAGE = path.resolve(import.meta.dirname, '../../../docs/guide/sign-in.md')

/** Returns the YAML of a provider in the guide. */
function yamlOf({ name }: Provider): string {
  const [, part = ''] = readFileSync(PAGE, 'utf8').split(`## ${name}\n`)
  const yaml = /```yaml\n([\s\S]*?)```/.exec(part)?.[1]
  if (yaml === undefined) throw new Error(`${PAGE} has no YAML for ${name}`)
  return yaml
}

const RULES = `
listen: { port: 0 }
servers: {}
callers:
  - { key: console-key-of-the-tests-0001, for: console, user: owner, roles: [approver] }
policy:
  - allow: ["*"]
`

type Change = (yaml: string) => string

export const CONSOLE_KEY = 'console-key-of-the-tests-0001'

/** Reads the YAML of the guide as an operator would, with the address of the stand-in for that of the provider. */
function configOf(standIn: StandIn, change: Change = (yaml) => yaml): GatewayConfig {
  const yaml = yamlOf(standIn.provider)
  const [issuer = ''] = /(?<=issuer: )\S+/.exec(yaml) ?? []
  const text = yaml
    .replace(/^publicUrl:.*$/m, '')
    .replaceAll(issuer, standIn.issuer)
    .replace('[accounts.google.com]', `["${new URL(standIn.issuer).host}"]`)
  return readYaml(change(RULES + text))
}

/** Reads the YAML of the guide as it stands. */
export function writtenConfig(provider: Provider): GatewayConfig {
  return readYaml(RULES + yamlOf(provider))
}

function readYaml(text: string): GatewayConfig {
  const folder = mkdtempSync(path.join(tmpdir(), 'toolgate-sign-in-'))
  try {
    const file = path.join(folder, 'toolgate.yaml')
    writeFileSync(file, text)
    return loadConfig(file, { env: { OIDC_SECRET: 'secret-of-the-console' } })
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** A browser without pages: it follows a login and keeps its cookies. */
export class Visitor {
  readonly #gateway: TestGateway
  readonly #standIn: StandIn
  cookie = ''

  constructor(gateway: TestGateway, standIn: StandIn) {
    this.#gateway = gateway
    this.#standIn = standIn
  }

  /** Logs in. Returns the answer of the callback. */
  async logIn(account: string): Promise<Response> {
    this.#standIn.account = account
    const begun = await fetch(`${this.#gateway.url}/api/oidc/login`, { redirect: 'manual' })
    const location = begun.headers.get('location')
    if (location === null) return begun
    const back = await this.#standIn.login(location)
    const answer = await fetch(back, { redirect: 'manual', headers: { cookie: cookiesOf(begun) } })
    this.cookie = cookiesOf(answer)
    return answer
  }

  /** Returns who is logged in, or the status of the refusal. */
  async session(url = this.#gateway.url): Promise<unknown> {
    const answer = await fetch(`${url}/api/session`, { headers: { cookie: this.cookie } })
    return answer.ok ? answer.json() : answer.status
  }
}

function cookiesOf(answer: Response): string {
  return answer.headers
    .getSetCookie()
    .map((line) => line.split(';')[0])
    .join('; ')
}

export interface World {
  readonly standIn: StandIn
  readonly gateway: TestGateway
  readonly visitor: Visitor
  /** Sends a request to `/mcp` with a token. */
  ask(token: string, method: string, params?: Params, era?: Era): Promise<Answer>
  /** Returns the tools that a token sees, or the status of the refusal. */
  tools(token: string): Promise<readonly string[] | number>
  /** Waits for the text of the gateway's log, and returns the line. */
  logged(pattern: RegExp): string
  /** Starts another gateway for the same stand-in. */
  again(given: Partial<GatewayConfig>, change?: Change): Promise<TestGateway>
  close(): Promise<void>
}

async function openGateway(standIn: StandIn, change: Change | undefined, given: Partial<GatewayConfig>) {
  try {
    const stores = { state: { store: 'memory' }, audit: { store: 'memory', mode: 'batched' } } as const
    return await startTestGateway({ ...configOf(standIn, change), ...stores, ...given })
  } catch (error) {
    await standIn.close()
    throw error
  }
}

/** Starts a stand-in and a gateway with the YAML of the guide. */
export async function startWorld(
  provider: Provider,
  change?: Change,
  given: Partial<GatewayConfig> = {},
): Promise<World> {
  const standIn = await startProvider(provider)
  const gateway = await openGateway(standIn, change, given)
  const audiences = /audiences: \["([^"]+)"\]/.exec(yamlOf(provider))?.[1]
  standIn.audience = audiences ?? gateway.mcpUrl
  const ask: World['ask'] = (token, method, params = {}, era = MODERN) => {
    const { headers, body } = toMessage(era, method, params)
    return send(gateway.mcpUrl, {
      headers: { ...headers, authorization: `Bearer ${token}` },
      body: JSON.stringify(body),
    })
  }
  return {
    standIn,
    gateway,
    visitor: new Visitor(gateway, standIn),
    ask,
    async tools(token) {
      const answer = await ask(token, 'tools/list')
      if (answer.status !== 200) return answer.status
      const { result } = answer.json() as RpcAnswer
      return (result?.tools ?? []).map(({ name }) => name)
    },
    logged(pattern) {
      const lines = gateway.log.map(({ message, detail = '' }) => `${message}: ${detail}`)
      const line = lines.find((one) => pattern.test(one))
      if (line === undefined) throw new Error(`no line of the log matches ${pattern}:\n${lines.join('\n')}`)
      return line
    },
    again: (more, other) => openGateway(standIn, other, { ...given, ...more }),
    async close() {
      await gateway.close()
      await standIn.close()
    },
  }
}
