import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { MemorySaver } from '@langchain/langgraph'
import { type AgentMiddleware, createMiddleware, todoListMiddleware, tool } from 'langchain'
import { z } from 'zod'
import { ADMINS_DELETE, createWitness, VIEWER } from '../testing/world.ts'
import { createWorld, loose, scripted, toldOf } from './testing/agents.ts'

const TODO = { name: 'write_todos', args: { todos: [{ content: 'x', status: 'pending' }] }, id: 'c1' }

describe('ungoverned (LangChain)', () => {
  for (const ungoverned of [['write_todos'], ['write_*']])
    it(`lets ${ungoverned.join()} of another middleware be sent and run beside the gate's tools`, async () => {
      const model = scripted([TODO])
      const world = createWorld(model, {
        policy: ADMINS_DELETE,
        after: [loose(todoListMiddleware())],
        guard: { ungoverned },
      })
      const told = toldOf(await world.run(VIEWER))
      assert.deepEqual(model.sent[0], ['alpha', 'search', 'write_todos'])
      assert.match(told[0] ?? '', /^write_todos success: Updated todo list/)
      assert.deepEqual(world.warnings, [])
      assert.deepEqual(world.audit.attempts(), [])
    })

  it('is empty by default: other tools are neither sent nor run, and the guard warns', async () => {
    const model = scripted([TODO])
    const world = createWorld(model, { after: [loose(todoListMiddleware())] })
    assert.match(toldOf(await world.run(VIEWER))[0] ?? '', /"write_todos" is not available/)
    assert.ok(!model.sent[0]?.includes('write_todos'))
    assert.match(world.warnings[0] ?? '', /"write_todos".*name it in ungoverned/)
  })

  it('covers no name that the gate knows, hidden or not, whatever the glob', async () => {
    const witness = createWitness()
    const other = tool(() => witness.body('impostor')(), { name: 'delete_all', schema: z.object({}) })
    const adding = createMiddleware({ name: 'Adding', tools: [other] }) as AgentMiddleware
    for (const order of ['before', 'after'] as const) {
      const model = scripted([
        { name: 'delete_all', id: 'c1' },
        { name: 'search', id: 'c2' },
      ])
      const world = createWorld(model, { policy: ADMINS_DELETE, [order]: [adding], guard: { ungoverned: ['*'] } })
      const told = toldOf(await world.run(VIEWER))
      assert.match(told[0] ?? '', /"delete_all" is not available/)
      assert.ok(!model.sent.flat().includes('delete_all'))
      assert.deepEqual([...witness.ran, ...world.witness.ran], ['search'])
      assert.deepEqual(world.audit.attempts()[0], 'delete_all tool_blocked policy_denied')
    }
  })
})

describe('a LangChain before 1.2.35', () => {
  /** It hands middlewares a runtime that says nothing of the configuration. */
  const old = createMiddleware({
    name: 'Old',
    wrapToolCall: (request, handler) => {
      const { configurable: _, ...runtime } = request.runtime as unknown as Record<string, unknown>
      return handler({ ...request, runtime: runtime as unknown as typeof request.runtime })
    },
  }) as AgentMiddleware
  const world = (approvals?: 'tell') =>
    createWorld(scripted([{ name: 'delete_all', id: 'c1' }]), {
      policy: { ask: ['delete_all'] },
      checkpointer: new MemorySaver(),
      before: [old],
      guard: { approvals },
    })

  it('cannot be paused: the guard says so, and the call waits all the same', async () => {
    const { run, warnings, witness } = world()
    assert.match(toldOf(await run(VIEWER))[0] ?? '', /Waiting for approval/)
    assert.match(warnings[0] ?? '', /older than 1\.2\.35/)
    assert.deepEqual(witness.ran, [])
  })

  it('leaves the model’s refusals unchanged', async () => {
    const { run, warnings } = world('tell')
    await run(VIEWER)
    assert.deepEqual(warnings, [])
  })
})
