import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import type { GatewayConfig } from '@toolgate/gateway'
import { startTestGateway, type TestGateway } from './support/gateway.ts'
import { callerConfig, CALLERS, KEYS } from './support/keys.ts'
import { nodeServer } from './support/servers.ts'

const VERSION = '4.32.5'
const SEED = 20
const EXAMPLES = 12
const HOST = 'host-key-of-a-runner'
const OPENAPI = path.join(import.meta.dirname, '../packages/gateway/openapi.json')
const CHECKS = [
  'not_a_server_error',
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
    const { status, error, stderr } = spawnSync(command, args, { encoding: 'utf8', timeout: 180_000 })
    if (status === 0) continue
    rmSync(home, { recursive: true, force: true })
    return { missing: `${command}: ${error?.message ?? stderr.trim().split('\n').at(-1) ?? status}` }
  }
  return { program }
}

const installed = install()
const reason = 'missing' in installed ? `schemathesis ${VERSION} is left out (${installed.missing})` : false
if (reason) console.log(reason)

/** The key that opens each part of the API. */
const PARTS = [
  { tag: 'agent', key: KEYS.viewer },
  { tag: 'host', key: HOST },
  { tag: 'person', key: KEYS.console },
  { tag: 'everyone', key: undefined },
] as const

/** Some minutes where the machine is busy; 20 s otherwise. */
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
    }
    gateway = await startTestGateway(given, () => given)
  })
  after(async () => {
    await gateway.close()
    rmSync(folder, { recursive: true })
  })

  for (const { tag, key } of PARTS)
    it(`answers ${tag} as openapi.json says, whatever is sent`, { timeout: 240_000 }, async (t) => {
      const { status, text } = await run([
        'run',
        OPENAPI,
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
