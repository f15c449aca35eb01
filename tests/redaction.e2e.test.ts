import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { globSync, readFileSync, writeFileSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { loadConfig } from '@toolgate/gateway'
import { startTestGateway, tempFolder, type TestGateway, until } from './support/gateway.ts'
import { MODERN, type RpcAnswer } from './support/rpc.ts'

const LEAKY = join(import.meta.dirname, 'support/leaky-server.js')
const CALLS = 150

interface Canary {
  /** As it occurs in a text. */
  readonly text: string
  /** The secret part, which must not occur anywhere. */
  readonly core: string
}

/** Kinds of canaries, each with a unique core of 40 letters and digits. */
const KINDS: readonly ((core: string) => string)[] = [
  (core) => `ghp_${core}`,
  (core) => `sk-ant-api03-${core}`,
  (core) => `sk-proj-${core}`,
  (core) => `glpat-${core}`,
  (core) => `xoxb-1234567890-${core}`,
  (core) => `npm_${core}`,
  (core) => `hf_${core}`,
  (core) => `sk_live_${core}`,
  (core) => `AIza${core}`,
  (core) => `eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.${core}`,
  (core) => `Authorization: Bearer ${core}`,
  (core) => `Cookie: a=1; session=${core}`,
  (core) => `password=${core}`,
  (core) => `{"apiKey":"${core}"}`,
  (core) => `--token ${core}`,
  (core) => `https://user:${core}@db.example/x`,
  (core) => `https://h.example/?n=1&access_token=${core}&m=2`,
  (core) => `-----BEGIN PRIVATE KEY-----\nMIIE${core}\n-----END PRIVATE KEY-----`,
]
const AROUND: readonly (readonly [string, string])[] = [
  ['', ''],
  ['see "', '".'],
  ['(', ')'],
  ['line\n', '\nnext line'],
  ['日本 ', ' ö'],
  ['a,', ',b'],
]

const canaries: Canary[] = []

function plant(): string {
  const i = canaries.length
  const core = createHash('sha256')
    .update(`canary ${i}`)
    .digest('base64')
    .replaceAll(/[^A-Za-z0-9]/g, 'x')
    .slice(0, 40)
  const [before, after] = AROUND[i % AROUND.length] as readonly [string, string]
  const text = `${before}${(KINDS[i % KINDS.length] as (core: string) => string)(core)}${after}`
  canaries.push({ text, core })
  return text
}

const many = (count: number) => Array.from({ length: count }, plant)
const inputOf = (n: number) => ({
  n,
  exact: 'wet-horse-of-the-env',
  text: plant(),
  deep: [{ password: plant(), [plant()]: 'x' }],
})

describe('a gateway full of secrets', () => {
  it('writes, logs and shows none of 1,000 canaries, and returns the tool’s output to the caller', async () => {
    const [folder, scratch] = [tempFolder(), tempFolder()]
    const rude = createServer(({ headers }, response) => {
      response.writeHead(500).end(`no such user: ${headers.authorization}`)
    })
    await new Promise<void>((resolve) => rude.listen(0, '127.0.0.1', resolve))
    const leaks = { outputs: many(CALLS), errors: many(CALLS), stderr: many(CALLS), stray: many(CALLS) }
    writeFileSync(join(scratch.path, 'leaks.json'), JSON.stringify(leaks))
    const secrets = ['wet-horse-of-the-env', 'dry-horse-of-the-header', 'key-of-the-caller-7']
    const [envToken, headerToken, callerKey] = secrets as [string, string, string]
    const yaml = `
servers:
  leaky: { command: ${process.execPath}, args: [${LEAKY}, ${join(scratch.path, 'leaks.json')}], env: { LEAKY_TOKEN: "\${LEAKY_TOKEN}" } }
  rude: { url: "http://127.0.0.1:${(rude.address() as AddressInfo).port}/mcp", headers: { authorization: "Custom \${RUDE_TOKEN}" }, startTimeoutMs: 2000 }
callers:
  - { key: demo-viewer, user: viewer, roles: [viewer] }
  - { key: demo-console, for: console, user: owner, roles: [approver] }
  - { key: "\${CALLER_KEY}", user: other }
policy: [{ ask: ["leaky:pay"], deny: ["leaky:hidden"] }]
audit: { store: sqlite, path: ${join(folder.path, 'audit.db')} }
redact: { patterns: ["INT-[0-9]+"] }
`
    writeFileSync(join(scratch.path, 'toolgate.yaml'), yaml)
    const env = { LEAKY_TOKEN: envToken, RUDE_TOKEN: headerToken, CALLER_KEY: callerKey }
    const config = loadConfig(join(scratch.path, 'toolgate.yaml'), { env })
    const gateway = await startTestGateway({ ...config, listen: { host: '127.0.0.1', port: 0 } })
    try {
      await callEverything(gateway, leaks.outputs, envToken)
      assert.ok(canaries.length >= 1000, `${canaries.length} canaries were planted`)
      const shown = await readEverything(gateway)
      await gateway.close()
      const files = globSync(join(folder.path, '**/*')).filter((file) => statSync(file).isFile())
      assert.ok(files.length > 0)
      const texts = [
        ...shown,
        ['log', JSON.stringify(gateway.log)] as const,
        ...files.map((file) => [file, readFileSync(file, 'latin1')] as const),
      ]
      for (const [where, text] of texts) {
        const found = [...canaries.map(({ core }) => core), ...secrets].filter((core) => text.includes(core))
        assert.deepEqual(found, [], `${found.length} canaries in ${where}`)
      }
      assert.match(JSON.stringify(gateway.log), /\[redacted:secret\]/)
      assert.match(texts.map(([, text]) => text).join(''), /\[redacted:github-token\]/)
    } finally {
      await gateway.close()
      await new Promise((resolve) => rude.close(resolve))
      folder.remove()
      scratch.remove()
    }
  })
})

async function callEverything(gateway: TestGateway, outputs: readonly string[], envToken: string): Promise<void> {
  const names = ['say', 'err', 'throw', 'pay', 'hidden']
  for (let n = 0; n < CALLS; n++) {
    const name = names[n % names.length] as string
    const era = n % 10 < 5 ? MODERN : '2025-11-25'
    const { result } = await gateway.call('viewer', era, `leaky__${name}`, inputOf(n))
    if (name === 'say') assert.deepEqual(result?.content, [{ type: 'text', text: `${outputs[n]} ${envToken}` }])
  }
  await gateway.ask('viewer', MODERN, plant())
  for (const era of [MODERN, '2025-11-25'] as const)
    for (const name of [plant(), envToken]) await gateway.call('viewer', era, `leaky__${name}`, {})
  const gone = (await gateway.call('viewer', MODERN, 'leaky__die', inputOf(0))) as RpcAnswer
  assert.ok(gone)
  await until(() => gateway.log.some(({ message }) => message.includes('is down: exited')))
}

async function readEverything(gateway: TestGateway): Promise<(readonly [string, string])[]> {
  const paths = [
    '/api/audit?limit=1000',
    '/api/approvals?limit=1000',
    '/api/tools?as=viewer',
    '/api/callers',
    '/api/pins',
    '/api/halts',
    '/api/why?tool=leaky:pay&as=viewer',
    `/api/why?tool=${encodeURIComponent(plant())}&as=viewer`,
    '/readyz',
  ]
  return Promise.all(paths.map(async (path) => [path, JSON.stringify((await gateway.api(path)).body)] as const))
}
