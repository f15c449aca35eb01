import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Mastra } from '@mastra/core'
import type { Agent } from '@mastra/core/agent'
import { InMemoryStore } from '@mastra/core/storage'
import type { Caller, Gate } from '@toolgate/core'
import { answerToolCall, answerToolCallStream, pausedRun } from './mastra.ts'
import { callOf, contextOf, createAgent, createScene } from './testing/mastra-scene.ts'
import type { MockModel } from './testing/mock-model.ts'
import { VIEWER } from './testing/world.ts'

const ASKS = { policy: { ask: ['delete_all'] } }
const APPROVER: Caller = { user: 'paul', roles: ['approver'] }
const AS_VIEWER = () => ({ requestContext: contextOf(VIEWER) })

interface Nested {
  readonly agent: Agent
  readonly model: MockModel
  /** The model of the agent that calls the tool. */
  readonly leaf: MockModel
}

/** Agents within agents. The innermost calls `search` and then `delete_all`. */
function nest(gate: Gate, levels: number, outer: Gate = gate): Nested {
  const calls = [callOf('search'), callOf('delete_all', { q: 'x' })]
  const leaf = createAgent(gate, [calls, 'it is done'])
  const agents: Record<string, Agent> = { leaf: leaf.agent }
  let last = { name: 'leaf', ...leaf }
  for (let level = 0; level < levels; level++) {
    const turns = [[callOf(`agent-${last.name}`, { prompt: 'Delete.' })], 'done']
    const after = { id: `l${level}`, agents: { [last.name]: last.agent } }
    const next = createAgent(outer, turns, { ungoverned: ['agent-*'], after: after as never })
    last = { name: `l${level}`, ...next }
    agents[last.name] = last.agent
  }
  void new Mastra({ agents, storage: new InMemoryStore(), logger: false })
  return { agent: last.agent, model: last.model, leaf: leaf.model }
}

describe('a sub-agent’s call that waits (Mastra)', () => {
  for (const levels of [1, 2]) {
    it(`is what an answer approves, ${levels} below: it runs once`, async () => {
      const { gate, witness } = createScene(ASKS)
      const { agent, model } = nest(gate, levels)
      const paused = pausedRun(await agent.generate('go', AS_VIEWER()))
      assert.deepEqual([paused.toolName, paused.args], ['delete_all', { q: 'x' }])
      const answered = await answerToolCall(agent, paused, { by: APPROVER, decision: 'approve', ...AS_VIEWER() })
      assert.deepEqual([answered.finishReason, answered.text], ['stop', 'done'])
      assert.deepEqual(witness.ran, ['search', 'delete_all'])
      assert.equal(Object.values(model.told()).length, 1)
      assert.equal((await gate.approvals.list())[0]?.decidedBy, 'paul')
    })

    it(`is what an answer rejects, ${levels} below: the sub-agent reads the reason`, async () => {
      const { gate, witness } = createScene(ASKS)
      const { agent, leaf } = nest(gate, levels)
      const paused = pausedRun(await agent.generate('go', AS_VIEWER()))
      const answer = { by: APPROVER, decision: 'reject', reason: 'Not on a Friday.', ...AS_VIEWER() } as const
      assert.equal((await answerToolCall(agent, paused, answer)).text, 'done')
      assert.deepEqual(witness.ran, ['search'])
      assert.match(JSON.stringify(leaf.told()), /Not on a Friday\./)
      assert.equal((await gate.approvals.list())[0]?.status, 'rejected')
    })
  }

  it('is answered from the chunk of a stream, too', async () => {
    const { gate, witness } = createScene(ASKS)
    const { agent } = nest(gate, 1)
    const stream = await agent.stream('go', AS_VIEWER())
    const chunks = await Array.fromAsync(stream.fullStream)
    const chunk = chunks.find(({ type }) => type === 'tool-call-approval')
    assert.ok(chunk?.type === 'tool-call-approval')
    const paused = { ...chunk.payload, runId: chunk.runId }
    const answered = await answerToolCallStream(agent, paused, { by: APPROVER, decision: 'approve', ...AS_VIEWER() })
    assert.equal(await answered.text, 'done')
    assert.deepEqual(witness.ran, ['search', 'delete_all'])
  })

  it('is answered at its own gate, where the agents have several', async () => {
    const inner = createScene(ASKS)
    const outer = createScene()
    const { agent } = nest(inner.gate, 1, outer.gate)
    const paused = pausedRun(await agent.generate('go', AS_VIEWER()))
    const answered = await answerToolCall(agent, paused, { by: APPROVER, decision: 'approve', ...AS_VIEWER() })
    assert.equal(answered.text, 'done')
    assert.deepEqual(inner.witness.ran, ['search', 'delete_all'])
    assert.deepEqual(await outer.gate.approvals.list(), [])
  })

  it('is not answered by an answer about the sub-agent itself, which throws', async () => {
    const { gate, witness } = createScene(ASKS)
    const { agent } = nest(gate, 1)
    const output = await agent.generate('go', AS_VIEWER())
    const paused = { ...pausedRun(output), toolName: 'agent-leaf', args: { prompt: 'Delete.' } }
    await assert.rejects(answerToolCall(agent, paused, { by: APPROVER, decision: 'approve', ...AS_VIEWER() }), {
      name: 'ConfigError',
      message: /"agent-leaf" runs without a gate, so the answer decides nothing/,
    })
    assert.deepEqual(witness.ran, ['search'])
    assert.equal((await gate.approvals.list())[0]?.status, 'pending')
  })
})
