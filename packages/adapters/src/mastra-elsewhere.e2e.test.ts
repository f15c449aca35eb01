import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Mastra } from '@mastra/core'
import { createDurableAgent } from '@mastra/core/agent/durable'
import { MockMemory } from '@mastra/core/memory'
import { InMemoryStore } from '@mastra/core/storage'
import { createStep, createWorkflow } from '@mastra/core/workflows'
import { z } from 'zod'
import { callOf, contextOf, createAgent, createScene, createTools } from './testing/mastra-scene.ts'
import type { mockModel } from './testing/mock-model.ts'
import { ADMINS_DELETE, createWitness, VIEWER } from './testing/world.ts'

describe('a durable agent of Mastra', () => {
  it('is governed by the line in the agent that it wraps', async () => {
    const { gate, witness, audit } = createScene({ limits: 'search:1/60' })
    const calls = [callOf('search', {}, '1'), callOf('search', {}, '2'), callOf('delete_all')]
    const { agent, model } = createAgent(gate, [calls, 'done'])
    const durable = createDurableAgent({ agent })
    void new Mastra({ agents: { durable }, storage: new InMemoryStore(), logger: false })
    const { output, cleanup } = await durable.stream('go', { requestContext: contextOf(VIEWER) })
    assert.equal(await output.text, 'done')
    cleanup()
    assert.deepEqual(model.sent()[0], ['alpha', 'search'])
    assert.deepEqual(witness.ran, ['search'])
    assert.deepEqual(audit.attempts().toSorted(), [
      'delete_all tool_blocked policy_denied',
      'search tool_call',
      'search tool_rate_limited rate_limited',
      'search tool_result',
    ])
  })
})

describe('a network of Mastra', () => {
  /** The model of a network is asked who is next, and then whether that was all. */
  const routes = (ids: readonly string[]): Parameters<typeof mockModel>[0] => {
    const answers = ids.flatMap((primitiveId) => [
      JSON.stringify({ primitiveId, primitiveType: 'tool', prompt: '{}', selectionReason: 'it is next' }),
      JSON.stringify({ isComplete: false, completionReason: '', finalResult: '' }),
    ])
    return (_, index) => answers[index] ?? '{}'
  }

  async function runNetwork(ids: readonly string[], limits?: string) {
    const scene = createScene(limits === undefined ? {} : { limits })
    const { agent, model } = createAgent(scene.gate, routes(ids), { after: { memory: new MockMemory() } })
    void new Mastra({ agents: { agent }, storage: new InMemoryStore(), logger: false })
    const memory = { thread: 't', resource: 'r' }
    const options = { requestContext: contextOf(VIEWER), memory, maxSteps: ids.length }
    const events: unknown = await agent.network('go', options)
    for await (const _ of events as AsyncIterable<unknown>);
    return { ...scene, model }
  }

  it('is told of no tool that the caller does not see, and runs none', async (t) => {
    const errors = t.mock.method(console, 'error', () => {})
    const { model, witness } = await runNetwork(['search', 'delete_all'])
    assert.ok(JSON.stringify(model.requests[0]?.prompt).includes('Does search.'))
    assert.ok(!JSON.stringify(model.requests[0]?.prompt).includes('delete_all'))
    assert.deepEqual(witness.ran, ['search'])
    assert.equal(errors.mock.callCount(), 0)
  })

  it('runs its tools through the gate', async () => {
    const { witness, audit } = await runNetwork(['search', 'search'], 'search:1/60')
    assert.deepEqual(witness.ran, ['search'])
    assert.equal(audit.attempts().at(-1), 'search tool_rate_limited rate_limited')
  })
})

describe('tools of Mastra in a workflow', () => {
  const wrap = (tool: ReturnType<typeof createTools>['search']) =>
    createWorkflow({ id: 'flow', inputSchema: z.object({ q: z.string().optional() }), outputSchema: z.any() })
      .then(createStep(tool as never) as never)
      .commit()

  async function start(tool: unknown) {
    const run = await wrap(tool as ReturnType<typeof createTools>['search']).createRun()
    return run.start({ inputData: { q: 'x' }, requestContext: contextOf(VIEWER) })
  }

  it('go through the gate where they are those that guard gives', async () => {
    const { gate, witness, audit } = createScene()
    const { agent } = createAgent(gate, ['done'])
    const { search } = await agent.listTools({ requestContext: contextOf(VIEWER) })
    assert.equal((await start(search)).status, 'success')
    gate.setPolicy([ADMINS_DELETE, { deny: ['search'] }])
    const refused = await start(search)
    assert.equal(refused.status, 'failed')
    assert.ok(refused.status === 'failed')
    assert.equal(refused.error.message, 'Tool "search" is not available. Available tools: alpha.')
    assert.deepEqual(witness.ran, ['search'])
    assert.equal(audit.attempts().at(-1), 'search tool_blocked policy_denied')
  })

  it('pass by it where they are what createTool gave: give a workflow those of guard', async () => {
    const witness = createWitness()
    assert.equal((await start(createTools(witness).search)).status, 'success')
    assert.deepEqual(witness.ran, ['search'])
  })
})
