import assert from 'node:assert/strict'
import { afterEach, describe, it } from 'node:test'
import { createMCPClient } from '@ai-sdk/mcp'
import { MultiServerMCPClient } from '@langchain/mcp-adapters'
import { toNodeHandler } from '@modelcontextprotocol/node'
import { createMcpHandler, Server } from '@modelcontextprotocol/server'
import { type Caller, createGate, defineTool } from '@toolgate/core'
import { fromAiSdk } from '../ai-sdk.ts'
import { fromLangChain } from '../langchain.ts'
import { authOf, INFO, listen, toCaller, withAuth } from '../testing/mcp-ways.ts'
import { ADMIN, ADMINS_DELETE, createWitness, VIEWER } from '../testing/world.ts'
import { guard } from './guard.ts'

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

async function serve() {
  const witness = createWitness()
  const tools = ['search', 'delete_all'].map((name) =>
    defineTool({ name, annotations: { readOnlyHint: name === 'search' }, execute: witness.body(name) }),
  )
  const gate = createGate({ tools, policy: ADMINS_DELETE })
  const handler = createMcpHandler(guard(gate, { server: () => new Server(INFO), caller: toCaller }))
  const http = await listen(
    (request, response) => void toNodeHandler(handler)(withAuth(request) as never, response as never),
  )
  closing.push(http.close, () => handler.close())
  return { witness, url: http.url }
}

describe('guard: clients of frameworks', () => {
  it('of the AI SDK see and run what their caller may, and their tools can be added to another gate', async () => {
    const { url, witness } = await serve()
    const connect = async (caller: Caller) => {
      const client = await createMCPClient({ transport: { type: 'http', url, headers: authOf(caller) } })
      closing.push(() => client.close())
      return client
    }
    assert.deepEqual(Object.keys(await (await connect(VIEWER)).tools()), ['search'])
    const tools = await (await connect(ADMIN)).tools()
    const view = await createGate({ tools: fromAiSdk(tools), policy: { allow: ['search'] } }).view({})
    assert.deepEqual(view.ids, ['search'])
    assert.equal((await view.call({ tool: 'delete_all', input: {} })).status, 'refused')
    assert.match((await view.call({ tool: 'search', input: {} })).text, /search done/)
    assert.deepEqual(witness.ran, ['search'])
  })

  it('of LangChain see and run what their caller may', async () => {
    const { url, witness } = await serve()
    const connect = async (caller: Caller) => {
      const client = new MultiServerMCPClient({ up: { transport: 'http', url, headers: authOf(caller) } })
      closing.push(() => client.close())
      return client.getTools()
    }
    assert.deepEqual(
      (await connect(VIEWER)).map(({ name }) => name),
      ['search'],
    )
    const tools = await connect(ADMIN)
    const gate = createGate({ tools: fromLangChain(tools as never) as never, policy: { allow: ['search'] } })
    const view = await gate.view({})
    assert.deepEqual(view.ids, ['search'])
    assert.equal((await view.call({ tool: 'search', input: {} })).text, 'search done')
    assert.deepEqual(witness.ran, ['search'])
  })
})
