import { existsSync } from 'node:fs'
import path from 'node:path'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as Client132 } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as Transport132 } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { MODERN } from '../support/rpc.ts'
import { type Connect, describeClients, programClient, textOf } from './support/clients.ts'
import { BOTH, call, CHECKED, describeServer, prompt, read, type RealServer, UNKNOWN } from './support/compare.ts'

/** Servers of npm, and the clients of three versions of the SDK. `scripts/prepare.js --harness` installs them. */

const MODULES = path.join(import.meta.dirname, 'npm/node_modules')
const program = (file: string) => ({ command: process.execPath, args: [path.join(MODULES, file)] })

const SERVERS: readonly RealServer[] = [
  {
    name: '@modelcontextprotocol/server-sequential-thinking',
    ...program('@modelcontextprotocol/server-sequential-thinking/dist/index.js'),
    eras: ['2025-11-25'],
    lists: [1, 0, 0, 0],
    asks: [
      call('sequentialthinking', { thought: 'a', nextThoughtNeeded: true, thoughtNumber: 1, totalThoughts: 2 }),
      call('sequentialthinking', { thought: 'a', nextThoughtNeeded: true, thoughtNumber: 0, totalThoughts: 2 }, [
        'invalid input',
        CHECKED,
      ]),
      call('none', {}, ['is not available', UNKNOWN]),
      prompt('none', {}, ['Prompt not found', UNKNOWN]),
    ],
  },
  {
    name: '@modelcontextprotocol/server-budget-allocator',
    command: process.execPath,
    args: [path.join(MODULES, '@modelcontextprotocol/server-budget-allocator/dist/index.js'), '--stdio'],
    eras: ['2025-11-25'],
    lists: [1, 1, 0, 0],
    asks: [call('get-budget-data', {}), read('ui://budget-allocator/mcp-app.html')],
  },
  {
    name: '@upstash/context7-mcp',
    ...program('@upstash/context7-mcp/dist/index.js'),
    eras: BOTH,
    lists: [2, 0, 0, 0],
    asks: [call('resolve-library-id', {}, ['must have required property', CHECKED])],
  },
]

const INFO = { name: 'real', version: '1' }
const options = (key: string) => ({ requestInit: { headers: { authorization: `Bearer ${key}` } } })

const connect132: Connect = async (url, key) => {
  const client = new Client132(INFO)
  const transport = new Transport132(new URL(url), options(key))
  await client.connect(transport as Parameters<Client132['connect']>[0])
  return {
    list: async () => (await client.listTools()).tools.map(({ name }) => name),
    call: async (name, input) => textOf(await client.callTool({ name, arguments: { ...input } })),
    close: () => client.close(),
  }
}

function connect2(mode: 'legacy' | { pin: string }): Connect {
  return async (url, key) => {
    const client = new Client(INFO, { versionNegotiation: { mode } })
    await client.connect(new StreamableHTTPClientTransport(new URL(url), options(key)))
    return {
      list: async () => (await client.listTools()).tools.map(({ name }) => name),
      call: async (name, input) => textOf(await client.callTool({ name, arguments: { ...input } })),
      close: () => client.close(),
    }
  }
}

const hasPackages = existsSync(path.join(MODULES, 'sdk-1.12'))
if (hasPackages) for (const server of SERVERS) describeServer(server, () => import.meta.dirname)
else if (process.env['CI'] === 'true') throw new Error('tests/real/npm/node_modules is missing: run scripts/prepare.js')
else
  console.warn('left out: the tests of servers of npm, as `node scripts/prepare.js --harness` has not installed them')

const EARLY: Readonly<Record<string, Connect>> = hasPackages
  ? { 'the SDK 1.12': programClient(process.execPath, [path.join(import.meta.dirname, 'npm/client.js')], 'legacy') }
  : {}

describeClients({
  ...EARLY,
  'the SDK 1.32': connect132,
  'the SDK 2.4, with initialize': connect2('legacy'),
  'the SDK 2.4, of 2026-07-28': connect2({ pin: MODERN }),
})
