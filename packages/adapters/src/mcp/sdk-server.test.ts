import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Client, InMemoryTransport } from '@modelcontextprotocol/client'
import { Server as ServerV1 } from '@modelcontextprotocol/sdk/server/index.js'
import { McpServer as McpServerV1 } from '@modelcontextprotocol/sdk/server/mcp.js'
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { McpServer as McpServerV2, Server as ServerV2 } from '@modelcontextprotocol/server'
import { z } from 'zod'
import { ConfigError, createGate, defineTool } from '@toolgate/core'
import { INFO } from '../testing/mcp-ways.ts'
import { ADMINS_DELETE, createTestAudit, createWitness, VIEWER } from '../testing/world.ts'
import { guard } from './guard.ts'
import type { LowServer } from './sdk-server.ts'

function world() {
  const witness = createWitness()
  const audit = createTestAudit()
  const gate = createGate({
    tools: ['search', 'delete_all'].map((name) => defineTool({ name, execute: witness.body(name) })),
    policy: ADMINS_DELETE,
    audit,
  })
  return { witness, audit, gate }
}

interface Connectable {
  connect(transport: never): Promise<void>
}
type High = { readonly server: LowServer } & Connectable & {
    registerTool(name: string, config: object, run: () => never): unknown
    registerPrompt(name: string, config: object, run: () => never): unknown
  }

/** Both SDKs, each with its own way to set a handler. */
const SERVERS: readonly {
  readonly sdk: string
  readonly low: () => LowServer & Connectable & { fallbackRequestHandler?: unknown }
  readonly high: () => High
  replace(server: LowServer, method: 'tools/list' | 'tools/call'): void
}[] = [
  {
    sdk: 'SDK v1',
    low: () => new ServerV1(INFO, { capabilities: {} }),
    high: () => new McpServerV1(INFO) as unknown as High,
    replace(server: LowServer, method: 'tools/list' | 'tools/call') {
      const schema = method === 'tools/list' ? ListToolsRequestSchema : CallToolRequestSchema
      ;(server as ServerV1).setRequestHandler(schema, () => ({ tools: [{ name: 'leak' }], content: [] }) as never)
    },
  },
  {
    sdk: 'SDK v2',
    low: () => new ServerV2(INFO, { capabilities: {} }),
    high: () => new McpServerV2(INFO) as unknown as High,
    replace(server: LowServer, method: 'tools/list' | 'tools/call') {
      ;(server as ServerV2).setRequestHandler(method, () => ({ tools: [{ name: 'leak' }], content: [] }) as never)
    },
  },
]

async function connect(server: Connectable): Promise<Client> {
  const [near, far] = InMemoryTransport.createLinkedPair()
  const client = new Client(INFO)
  await server.connect(far as never)
  await client.connect(near)
  return client
}

for (const { sdk, low, high, replace } of SERVERS) {
  describe(`guard: code that runs after it, ${sdk}`, () => {
    it('cannot replace the gate’s handlers for tools', async () => {
      const { gate, witness } = world()
      const server = guard(gate, { server: low, caller: VIEWER })()
      for (const method of ['tools/list', 'tools/call'] as const)
        assert.throws(() => replace(server, method), { code: 'config_invalid', message: new RegExp(method) })
      const client = await connect(server)
      assert.deepEqual(
        (await client.listTools()).tools.map(({ name }) => name),
        ['search'],
      )
      assert.equal((await client.callTool({ name: 'delete_all', arguments: {} })).isError, true)
      assert.deepEqual(witness.ran, [])
      await client.close()
    })

    it('cannot register a tool around the gate', async () => {
      const { gate } = world()
      const server = guard(gate, { server: high, caller: VIEWER })()
      const register = () => server.registerTool('leak', {}, noRun)
      assert.throws(register, ConfigError)
      const client = await connect(server)
      assert.deepEqual(
        (await client.listTools()).tools.map(({ name }) => name),
        ['search'],
      )
      await client.close()
    })

    it('may set a fallback handler, which gets all other requests', async () => {
      const { gate } = world()
      const server = guard(gate, { server: low, caller: VIEWER })()
      const client = await connect(server)
      const ask = () => client.request({ method: 'acme/weather', params: {} }, z.looseObject({}))
      await assert.rejects(ask, { code: -32_601, message: 'Method not found' })
      const asked: string[] = []
      server.fallbackRequestHandler = async ({ method }: { method: string }) => {
        asked.push(method)
        return { tools: [{ name: 'leak', inputSchema: { type: 'object' } }] }
      }
      await ask()
      assert.deepEqual(
        (await client.listTools()).tools.map(({ name }) => name),
        ['search'],
      )
      assert.deepEqual(asked, ['acme/weather'])
      await client.close()
    })

    it('may offer its own prompts and resources', async () => {
      const { gate } = world()
      const server = guard(gate, { server: high, caller: VIEWER })()
      server.registerPrompt('greet', {}, noRun)
      const client = await connect(server)
      assert.deepEqual(
        (await client.listPrompts()).prompts.map(({ name }) => name),
        ['greet'],
      )
      assert.equal((await client.listTools()).tools.length, 1)
      await client.close()
    })
  })

  describe(`guard: servers that it rejects, ${sdk}`, () => {
    it('have their own tools', () => {
      const { gate } = world()
      const withTools = () => {
        const server = high()
        server.registerTool('leak', {}, noRun)
        return server
      }
      assert.throws(guard(gate, { server: withTools, caller: VIEWER }), /has its own tools.*fromMcpServer/)
    })

    it('are already connected', async () => {
      const { gate } = world()
      const server = low()
      const client = await connect(server)
      assert.throws(guard(gate, { server: () => server, caller: VIEWER }), /is already connected/)
      await client.close()
    })
  })
}

function noRun(): never {
  throw new Error('it ran')
}

describe('guard: options', () => {
  const { gate } = world()

  it('are checked at once', () => {
    const server = () => new ServerV2(INFO)
    assert.throws(
      () => guard(gate, { server: new ServerV2(INFO) as never, caller: VIEWER }),
      /server: must be a function/,
    )
    assert.throws(() => guard(gate, { server, caller: { user: 5 } as never }), { code: 'caller_invalid' })
    assert.throws(() => guard(gate, { server, caller: VIEWER, app: 'desk' }), /app: there is no app "desk"/)
    assert.throws(guard(gate, { server: () => ({}) as never, caller: VIEWER }), /must return a Server or an McpServer/)
  })
})
