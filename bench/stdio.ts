import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createHash } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { startGateway } from '@toolgate/gateway'
import { digits, median, printTable } from './lib.ts'

/** What a desktop client waits for: from the start of `toolgate stdio` to its first list, with a gateway running. */
const STARTS = 9
const BUDGET_MS = 500
const KEY = 'key-of-the-bench'

const bin = fileURLToPath(new URL('../packages/cli/bin/toolgate.js', import.meta.url))
const gateway = await startGateway({
  file: '/bench/toolgate.yaml',
  listen: { host: '127.0.0.1', port: 0 },
  servers: [],
  callers: [{ keyHash: createHash('sha256').update(KEY).digest(), for: 'mcp', caller: { user: 'bench' } }],
  groups: [],
  policy: [{ allow: ['*'] }],
  limits: [],
  audit: { store: 'memory', mode: 'batched' },
  search: { offer: 'always' },
})
await gateway.ready

const MODERN = {
  _meta: {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {},
  },
}
const CLIENT = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'bench', version: '1' } }
const ERAS: readonly [name: string, messages: readonly object[]][] = [
  ['2026-07-28', [{ id: 'list', method: 'tools/list', params: MODERN }]],
  [
    '2025-11-25',
    [
      { id: 'begin', method: 'initialize', params: CLIENT },
      { method: 'notifications/initialized' },
      { id: 'list', method: 'tools/list' },
    ],
  ],
]

/** Sends each request when the one before it is answered, as clients do. */
async function firstListMs(messages: readonly object[]): Promise<number> {
  const startedMs = performance.now()
  const child = spawn(process.execPath, [bin, 'stdio', '--url', gateway.url], {
    env: { PATH: process.env['PATH'], TOOLGATE_KEY: KEY },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  for (const message of messages) {
    child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
    if (!('id' in message)) continue
    const [answer] = (await once(child.stdout, 'data')) as [Buffer]
    if (!answer.includes('"result"')) throw new Error(`no result: ${answer.toString()}`)
  }
  const ms = performance.now() - startedMs
  child.stdin.end()
  await once(child, 'close')
  return ms
}

const rows: string[][] = []
for (const [era, messages] of ERAS) {
  const times: number[] = []
  for (let i = 0; i < STARTS; i++) times.push(await firstListMs(messages))
  rows.push([era, digits(median(times)), digits(Math.max(...times)), `≤ ${BUDGET_MS}`])
}
await gateway.close()
printTable(
  `toolgate stdio: from its start to the first list, in ms (medians of ${STARTS} starts)`,
  ['era', 'median', 'worst', 'budget'],
  rows,
)
