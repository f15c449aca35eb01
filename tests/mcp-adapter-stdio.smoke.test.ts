import assert from 'node:assert/strict'
import { join } from 'node:path'
import { afterEach, describe, it } from 'node:test'
import { Client as ClientV2 } from '@modelcontextprotocol/client'
import { StdioClientTransport as StdioV2 } from '@modelcontextprotocol/client/stdio'
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport as StdioV1 } from '@modelcontextprotocol/sdk/client/stdio.js'
import { until } from './support/gateway.ts'

/** Guarded servers in their own processes, and clients that start them. */

const PROGRAM = join(import.meta.dirname, 'support/guarded-stdio.ts')
/** The sources that each process loads, compiled. */
const CACHE = process.env['NODE_COMPILE_CACHE']
const INFO = { name: 'test', version: '1' }

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

interface Result {
  readonly isError?: boolean
  readonly content?: readonly { readonly text?: string }[]
  readonly structuredContent?: unknown
  readonly tools?: readonly { readonly name: string }[]
}
interface Connected {
  list(): Promise<string>
  call(name: string, args?: Record<string, unknown>): Promise<Result>
  readonly changes: () => number
}

const command = (...args: string[]) => ({
  command: process.execPath,
  args: ['--conditions=toolgate-source', PROGRAM, ...args],
  env: CACHE === undefined ? {} : { NODE_COMPILE_CACHE: CACHE },
})

async function connectV1(sdk: string, role: string): Promise<Connected> {
  const client = new ClientV1(INFO)
  let changes = 0
  client.fallbackNotificationHandler = async () => void changes++
  await client.connect(new StdioV1(command(sdk, role)))
  closing.push(() => client.close())
  return {
    list: async () => (await client.listTools()).tools.map(({ name }) => name).join(),
    call: async (name, args = {}) => (await client.callTool({ name, arguments: args })) as Result,
    changes: () => changes,
  }
}

async function connectV2(sdk: string, role: string, mode: 'auto' | 'legacy'): Promise<Connected> {
  const client = new ClientV2(INFO, { versionNegotiation: { mode } })
  let changes = 0
  client.setNotificationHandler('notifications/tools/list_changed', () => void changes++)
  await client.connect(new StdioV2(command(sdk, role)))
  closing.push(() => client.close())
  if (client.getProtocolEra() === 'modern') await client.listen({ toolsListChanged: true })
  return {
    list: async () => (await client.listTools()).tools.map(({ name }) => name).join(),
    call: async (name, args = {}) => (await client.callTool({ name, arguments: args })) as Result,
    changes: () => changes,
  }
}

const WAYS: readonly [string, (role: string) => Promise<Connected>][] = [
  ['a server of SDK v1 and a client of v1', (role) => connectV1('v1', role)],
  ['a server of SDK v1 and a client of v2', (role) => connectV2('v1', role, 'legacy')],
  ['a server of SDK v2 and a client of v1', (role) => connectV1('v2', role)],
  ['a server of SDK v2 and a client of v2, 2026-07-28', (role) => connectV2('v2', role, 'auto')],
]

for (const [name, connect] of WAYS) {
  describe(`guard on stdio: ${name}`, () => {
    it('lists and runs the tools that the caller may use', async () => {
      const viewer = await connect('viewer')
      assert.equal(await viewer.list(), 'add,tighten')
      assert.deepEqual((await viewer.call('add', { a: 2, b: 3 })).structuredContent, { sum: 5 })
      const refused = await viewer.call('delete_all')
      assert.deepEqual(
        [refused.isError, refused.content?.[0]?.text?.split('.')[0]],
        [true, 'Tool "delete_all" is not available'],
      )
    })

    it('notifies the client when its list has changed', async () => {
      const admin = await connect('admin')
      assert.equal(await admin.list(), 'add,delete_all,tighten')
      await admin.call('tighten')
      await until(() => admin.changes() > 0)
      assert.equal(await admin.list(), 'add,tighten')
    })
  })
}
