import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Agent, getAllMcpTools, type MCPServer } from '@openai/agents'
import { modelResponder, ScriptedModel } from '@openai/agents/testing'
import { createGate, defineTool } from '@toolgate/core'
import { fromOpenAIAgents, type Governable, guard } from '../openai-agents.ts'
import { callerOf, calls, DONE, runnerOf, sentTools, type Session, toldTexts } from '../testing/openai-agents-scene.ts'
import { ADMIN, createTestAudit, VIEWER } from '../testing/world.ts'

describe('guard: an MCP server of an agent', () => {
  it('shows each caller, and each step, what the gate shows them: nothing of a filtered list is kept', async () => {
    const { server, listed } = createServer({ cacheToolsList: true })
    const names = ['search', 'delete_all'] as const
    const gate = createGate({
      tools: names.map((name) => defineTool({ namespace: 'files', name })),
      policy: { deny: [{ match: 'files:delete_all', unless: "'admin' in caller.roles" }] },
    })
    const guarded = guard(gate, { caller: callerOf })
    server.toolFilter = guarded.toolFilter
    const model = new ScriptedModel()
    const agent = new Agent<Session>({ name: 'A', model, mcpServers: [server] })
    const run = (caller: Session['caller']) => runnerOf(guarded).run(agent, 'hi', { context: { caller } })
    const tighten = modelResponder(() => {
      gate.setPolicy({ deny: ['files:delete_all'] })
      return calls('search')
    })
    model.enqueue(DONE, DONE, DONE, tighten, DONE)
    for (const caller of [VIEWER, ADMIN, VIEWER, ADMIN]) await run(caller)
    const all = ['search', 'delete_all']
    assert.deepEqual(sentTools(model), [['search'], all, ['search'], all, ['search']])
    assert.equal(listed(), 1)
  })

  it('shows nothing that the gate has not heard of', async () => {
    const { server } = createServer()
    const guarded = guard(createGate({ tools: [defineTool({ namespace: 'files', name: 'search' })] }), {
      caller: VIEWER,
    })
    server.toolFilter = guarded.toolFilter
    const model = new ScriptedModel([DONE])
    await runnerOf(guarded).run(new Agent({ name: 'A', model, mcpServers: [server] }), 'hi')
    assert.deepEqual(sentTools(model), [['search']])
  })

  it('is enforced where its tools are brought in as function tools', async () => {
    const { server, called } = createServer()
    const audit = createTestAudit()
    const native = (await getAllMcpTools([server])) as Governable[]
    const policy = { deny: [{ match: 'delete_all', unless: "'admin' in caller.roles" }] }
    const guarded = guard(createGate({ tools: fromOpenAIAgents(native), policy, audit }), { caller: callerOf })
    const model = new ScriptedModel([calls('delete_all', 'search'), DONE])
    const agent = new Agent<Session>({ name: 'A', model, tools: guarded.tools })
    await runnerOf(guarded).run(agent, 'hi', { context: { caller: VIEWER } })
    assert.deepEqual(sentTools(model)[0], ['search'])
    assert.deepEqual(called, ['search'])
    assert.deepEqual(toldTexts(model), ['search done', 'Tool "delete_all" is not available. Available tools: search.'])
    assert.equal(audit.attempts().at(-1), 'delete_all tool_blocked policy_denied')
  })
})

function createServer({ cacheToolsList = false } = {}) {
  const called: string[] = []
  let listed = 0
  const server: MCPServer = {
    name: 'files',
    cacheToolsList,
    connect: () => Promise.resolve(),
    close: () => Promise.resolve(),
    invalidateToolsCache: () => Promise.resolve(),
    listTools: () => {
      listed += 1
      const inputSchema = { type: 'object' as const, properties: {}, required: [], additionalProperties: false }
      return Promise.resolve(['search', 'delete_all'].map((name) => ({ name, description: 'x', inputSchema })))
    },
    callTool: (name) => {
      called.push(name)
      return Promise.resolve([{ type: 'text', text: `${name} done` }])
    },
  }
  return { server, called, listed: () => listed }
}
