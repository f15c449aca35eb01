import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import type { GatewayConfig } from '@toolgate/gateway'
import { startTestGateway, type TestGateway } from './support/gateway.ts'
import { callerConfig, CALLERS, KEYS } from './support/keys.ts'
import { openapi } from './support/openapi.ts'
import { nodeServer } from './support/servers.ts'

const VERSION = '4.32.5'
const SEED = 20
const EXAMPLES = 12
const HOST = 'host-key-of-a-runner'
const CHECKS = [
  'not_a_server_error',
  // Its opposite, positive_data_acceptance, stays off: "one of the two fields", "a text of YAML" and "not of a parent" have no schema.
  'negative_data_rejection',
  'status_code_conformance',
  'content_type_conformance',
  'response_headers_conformance',
  'response_schema_conformance',
  'unsupported_method',
  'allow_header_conformance',
].join()

/** The path of Python's virtual environment with schemathesis, or the reason for its absence. It is made once. */
function install(): { readonly program: string } | { readonly missing: string } {
  const home = path.join(import.meta.dirname, '../node_modules/.cache', `schemathesis-${VERSION}`)
  const program = path.join(home, 'bin/schemathesis')
  if (existsSync(program)) return { program }
  const steps = [
    ['python3', '-m', 'venv', home],
    [path.join(home, 'bin/pip'), 'install', '--quiet', `schemathesis==${VERSION}`],
  ]
  for (const [command = '', ...args] of steps) {
    const { status, error, stderr } = spawnSync(command, args, { encoding: 'utf8', timeout: 600_000 })
    if (status === 0) continue
    rmSync(home, { recursive: true, force: true })
    return { missing: `${command}: ${error?.message ?? stderr.trim().split('\n').at(-1) ?? status}` }
  }
  return { program }
}

const installed = install()
const reason = 'missing' in installed ? `schemathesis ${VERSION} is left out (${installed.missing})` : false
if (reason) console.log(reason)

const TOOL = 'slow:echo'

/** Values of parameters and bodies with which an operation succeeds, by its id. */
type Examples = Readonly<Record<string, { readonly body?: object } & Readonly<Record<string, unknown>>>>

/** Makes one of each thing that has an id. */
async function makeExamples({ api }: TestGateway): Promise<Examples> {
  const post = async (at: string, body: object, key?: string) => {
    const answer = await api(at, { method: 'POST', body, ...(key !== undefined && { key }) })
    assert.equal(answer.status, 200, JSON.stringify(answer.body))
    return answer.body as { readonly id: string; readonly approval: { readonly id: string } }
  }
  const call = { tool: TOOL, input: {} }
  const trial = { ...call, as: 'viewer' }
  const { approval } = await post('/api/call', call, KEYS.viewer)
  const waits = { id: approval.id }
  const policy = JSON.stringify([{ allow: ['*'] }])
  return {
    deleteRunsId: { id: (await post('/api/runs', { user: 'viewer' }, HOST)).id },
    deleteKeysId: { id: (await post('/api/keys', { user: 'viewer' })).id },
    deleteHaltsId: { id: (await post('/api/halts', { user: 'nobody', reason: 'a test' })).id },
    postApprovalsIdCompare: waits,
    postApprovalsId: { ...waits, body: { decision: 'approve' } },
    postServersIdRestart: { id: 'slow' },
    getLogs: { server: 'slow' },
    getTool: { tool: TOOL, as: 'viewer' },
    getTools: { as: 'viewer' },
    getToolsColumns: { as: 'viewer' },
    getWhy: { tool: TOOL, as: 'viewer' },
    getPreferences: { as: 'viewer' },
    postWhy: { body: trial },
    postToolCall: { body: trial },
    postDecide: { body: call },
    postCall: { body: call },
    postRuns: { body: { user: 'viewer' } },
    postKeys: { body: { user: 'viewer' } },
    postCompare: { body: { policy } },
    postWhatIf: { body: { policy } },
  }
}

/** Returns the description with examples, which are sent first. */
function withExamples(examples: Examples): object {
  const document = structuredClone(openapi.document) as unknown as Document
  for (const operation of Object.values(document.paths).flatMap((methods) => Object.values(methods))) {
    const { body, ...values } = examples[operation.operationId] ?? {}
    const content = operation.requestBody?.content['application/json']
    if (content && body) content.example = body
    for (const parameter of operation.parameters ?? [])
      if (parameter.name in values) parameter.example = values[parameter.name]
  }
  return document
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>>
}

interface Described {
  readonly operationId: string
  readonly parameters?: readonly { readonly name: string; example?: unknown }[]
  readonly requestBody?: { readonly content: Readonly<Record<string, { example?: object }>> }
}

/** The key that opens each part of the API. */
const PARTS = [
  { tag: 'agent', key: KEYS.viewer },
  { tag: 'host', key: HOST },
  { tag: 'person', key: KEYS.console },
  { tag: 'everyone', key: undefined },
] as const

/** Half a minute. The limits are for the slowest of machines: no answer depends on time. */
describe('the HTTP API, by schemathesis', { skip: reason }, () => {
  let gateway: TestGateway
  let folder: string
  before(async () => {
    folder = mkdtempSync(path.join(tmpdir(), 'toolgate-contract-'))
    const given: Partial<GatewayConfig> = {
      servers: [nodeServer('slow', [path.join(import.meta.dirname, 'support/slow-server.js')])],
      callers: [...CALLERS, callerConfig(HOST, { user: 'runner' }, 'host')],
      state: { store: 'memory' },
      pins: 'suspend',
      policy: [{ allow: ['*'], ask: [TOOL] }],
    }
    gateway = await startTestGateway(given, () => given)
    writeFileSync(path.join(folder, 'openapi.json'), JSON.stringify(withExamples(await makeExamples(gateway))))
  })
  after(async () => {
    await gateway.close()
    rmSync(folder, { recursive: true })
  })

  for (const { tag, key } of PARTS)
    it(`answers ${tag} as openapi.json says, whatever is sent`, { timeout: 1_200_000 }, async (t) => {
      const { status, text } = await run([
        'run',
        path.join(folder, 'openapi.json'),
        '--url',
        gateway.url,
        '--include-tag',
        tag,
        '--checks',
        CHECKS,
        '--phases',
        'examples,coverage,fuzzing',
        '--seed',
        String(SEED),
        '--max-examples',
        String(EXAMPLES),
        '--no-shrink',
        '--request-timeout',
        '300',
        '--suppress-health-check',
        'all',
        '--generation-database',
        'none',
        '--no-color',
        '--continue-on-failure',
        ...(key === undefined ? [] : ['-H', `Authorization: Bearer ${key}`]),
      ])
      for (const line of text.split('\n').filter((one) => /Selected|Tested|generated|passed|failed/.test(one)))
        t.diagnostic(`${tag}: ${line.trim()}`)
      assert.equal(status, 0, text)
    })

  async function run(args: readonly string[]): Promise<{ readonly status: number | null; readonly text: string }> {
    const program = 'program' in installed ? installed.program : ''
    const child = spawn(program, args, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] })
    const texts = [child.stdout, child.stderr].map(async (stream) =>
      (await stream.setEncoding('utf8').toArray()).join(''),
    )
    const { promise, resolve, reject } = Promise.withResolvers<number | null>()
    child.once('error', reject).once('close', resolve)
    const status = await promise
    return { status, text: (await Promise.all(texts)).join('\n') }
  }
})
