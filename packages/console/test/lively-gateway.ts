import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ApprovalsBody } from '../../gateway/src/model/rows.ts'
import { loadConfig, type RunningGateway, startGateway } from '../../gateway/src/index.ts'
import { tempFolder } from '../../../tests/support/gateway.ts'
import { send } from '../../../tests/support/http.ts'
import { Witness } from '../../../tests/support/items-witness.ts'
import { hostModern } from '../../../tests/support/mcp-host.ts'
import { CHECKER, startAccountServer } from '../../../tests/support/account-server.ts'
import { startAuthorizationServer } from '../../../tests/support/authorization-server.ts'
import { toMessage } from '../../../tests/support/rpc.ts'
import { startRecordingServer } from '../../../tests/support/recording-server.ts'
import { LONG_NAME, PAYMENTS } from './payments.ts'

const SERVER = join(import.meta.dirname, '../../../tests/support/reload-server.js')

/** A real gateway with servers of every kind, and with calls, requests, halts, keys and runs on every page. */
export interface LivelyGateway {
  readonly url: string
  readonly file: string
  readonly gateway: RunningGateway
  /** Makes a call as an agent, and returns its answer. */
  call(key: string, tool: string, input?: object): Promise<{ readonly status: string }>
  api(method: 'DELETE' | 'GET' | 'POST', path: string, body?: object, key?: string): Promise<unknown>
  /** The inputs that a tool of the server "payments" got. */
  sent(tool: string): readonly unknown[]
  close(): Promise<void>
}

/** The key of a person who may do everything in the console. */
export const PERSON = 'demo-owner'

export async function startLivelyGateway(consoleDir: string): Promise<LivelyGateway> {
  const folder = tempFolder()
  const payments = await startRecordingServer(PAYMENTS)
  const files = await hostModern(new Witness().answer)
  const login = await startAuthorizationServer({ format: 'opaque', clients: [CHECKER] })
  const mail = await startAccountServer({ login })
  const file = join(folder.path, 'toolgate.yaml')
  writeFileSync(file, fileOf({ payments: payments.url, files: files.url, mail: mail.url }))
  const gateway = await startGateway(loadConfig(file), { consoleDir })
  await gateway.ready

  const api: LivelyGateway['api'] = async (method, path, body, key = PERSON) => {
    const answer = await send(`${gateway.url}${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    })
    return answer.json()
  }
  const call: LivelyGateway['call'] = async (key, tool, input = {}) =>
    (await api('POST', '/api/call', { tool, input }, key)) as { status: string }
  const lively: LivelyGateway = {
    url: gateway.url,
    file,
    gateway,
    call,
    api,
    sent: (tool) => payments.calls(tool).map(({ params }) => params['arguments']),
    async close() {
      await gateway.close()
      await payments.close()
      await files.close()
      await mail.close()
      await login.close()
      folder.remove()
    },
  }
  await live(lively)
  return lively
}

/** What agents and people have done before the browser opens. */
async function live({ api, call, gateway }: LivelyGateway): Promise<void> {
  for (let round = 0; round < 4; round++) {
    await call('demo-clara', 'payments:balance', { account: `CH${round}` })
    await call('demo-clara', 'payments:refund', { order: `o-${round}`, amount: 900 })
    await call('demo-guest', 'payments:balance', {})
    await call('demo-bert', 'proc:echo', { word: 'hello' })
  }
  await call('demo-bert', 'proc:fail', { word: 'no disk' })
  await call('demo-bert', 'payments:broken')
  await call('demo-bert', 'own:echo')
  const { token } = (await api('POST', '/api/runs', { user: 'clara' }, 'demo-host')) as { token: string }
  await call(token, 'payments:mails')
  await call(token, 'payments:transfer', { to: 'eve@evil.example', amount: 60 })
  await call('demo-clara', 'payments:transfer', { to: 'ann', amount: 70, currency: 'CHF' })
  await call('demo-clara', 'payments:edit', {
    path: 'rules/limits.yaml',
    oldText: 'daily: 500\nweekly: 2000\n',
    newText: 'daily: 5000\nweekly: 2000\nnote: raised\n',
  })
  await callAsClient(gateway.url, { key: 'demo-bert', name: `payments__${LONG_NAME}`, input: { quarter: '2026-Q3' } })
  for (const user of ['guest', 'gina'])
    await call(`demo-${user}`, 'payments:edit', { path: 'a', oldText: '1', newText: '2' })
  for (const [path, decision] of [
    ['old.txt', 'approve'],
    ['secret.txt', 'reject'],
  ] as const) {
    await call('demo-bert', 'payments:edit', { path })
    const { approvals } = (await api('GET', '/api/approvals?status=pending')) as ApprovalsBody
    const grant = { covers: 'input', uses: 3, forMs: 3_600_000 }
    const more = decision === 'approve' ? { grant } : {}
    await api('POST', `/api/approvals/${approvals[0]?.id}`, { decision, reason: 'as agreed on Monday', ...more })
    await call('demo-bert', 'payments:edit', { path })
  }
  await api('POST', '/api/keys', { user: 'clara', tenant: 'acme', id: 'clara-laptop' })
  await gateway.gate.halt({ tool: 'proc:wait', reason: 'it never comes back', by: 'olga' })
}

interface ClientCall {
  readonly key: string
  readonly name: string
  readonly input: object
}

/** Makes a call as a client of MCP does, whose input an approver may change. */
async function callAsClient(url: string, { key, name, input }: ClientCall): Promise<void> {
  const { headers, body } = toMessage('2026-07-28', 'tools/call', { name, arguments: input })
  await send(`${url}/mcp`, { headers: { ...headers, authorization: `Bearer ${key}` }, body: JSON.stringify(body) })
}

function fileOf({ payments, files, mail }: Readonly<Record<'files' | 'mail' | 'payments', string>>): string {
  return `servers:
  payments:
    url: ${JSON.stringify(payments)}
    per: shared
    tools:
      balance: { tags: [read] }
      mails: { tags: [read] }
      "*": { category: money }
  mail: { url: ${JSON.stringify(mail)}, oauth: {} }
  files: { url: ${JSON.stringify(files)}, per: shared, offers: [tools, resources, prompts] }
  proc: { command: ${JSON.stringify(process.execPath)}, args: [${JSON.stringify(SERVER)}], per: shared }
  own: { command: ${JSON.stringify(process.execPath)}, args: [${JSON.stringify(SERVER)}] }
  broken: { command: ${JSON.stringify(process.execPath)}, args: ["-e", "console.error('no such database'); process.exit(3)"], per: shared }
callers:
  - { key: demo-clara, user: clara, tenant: acme, roles: [clerk] }
  - { key: demo-bert, user: bert, roles: [clerk, operator] }
  - { key: demo-guest, user: guest, roles: [guest] }
  - { key: demo-gina, user: gina, roles: [guest] }
  - { key: demo-vera, user: vera, roles: [clerk] }
  - { key: demo-host, for: host, user: runner, tenant: acme }
  - { key: ${PERSON}, for: console, user: vera, roles: [approver, operator] }
  - { key: demo-looker, for: console, user: luke, roles: [] }
  - { key: demo-boss, for: console, user: boss, tenant: acme, roles: [operator] }
groups:
  lab:
    title: Lab
    tools: ["payments:${LONG_NAME}"]
    availableWhen: [{ command: [node, --version] }]
  nightly:
    title: Nightly jobs
    tools: ["proc:pid"]
    availableWhen: [{ tcp: "127.0.0.1:9" }]
    suggestion: "Start the scheduler on port 9."
apps:
  till: { tools: ["payments:*"], instructions: "Be exact." }
labels: { trusted: ["payments:balance", "proc:*"] }
policy:
  - name: payments
    allow: ["*", "resource:*:*", "prompt:*:*"]
    deny:
      - { match: "payments:refund", input: "input.amount >= 100", message: "Refunds from 100 are made by hand." }
      - { match: "payments:*", unless: "!('guest' in caller.roles) || tool.name in ['edit', 'balance']", message: "Guests do not see money." }
      - { match: "payments:balance", when: "'guest' in caller.roles", mode: shadow }
      - { match: "gone:*", when: "caller.user == 'nobody'" }
    ask:
      - { match: "payments:transfer", input: "input.amount >= 50" }
      - { match: "payments:edit", when: "caller.user != ''" }
      - { match: "payments:${LONG_NAME}", edit: true }
      - { match: "payments:refund", when: "'untrusted' in run.labels" }
grants: { max: 8h }
limits:
  - "payments:balance:100/60"
  - { match: "payments:transfer", max: 500, windowMs: 86400000, per: [user], cost: "input.amount" }
state: { store: memory }
audit: { store: memory, inputs: facts }
listen: { port: 0 }
`
}
