import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Command, MemorySaver } from '@langchain/langgraph'
import { defineCaller } from '@toolgate/core'
import { ADMIN, ADMINS_DELETE, VIEWER } from '../testing/world.ts'
import { createWorld, HELLO, scripted } from './testing/agents.ts'

/** The invocation of LangGraph’s server: a client’s JSON, and the user if authentication is set up. */
function serverConfig(body: string, user?: { readonly identity: string }) {
  const { context, config } = JSON.parse(body) as { context: object; config?: { configurable?: object } }
  return {
    context: context as never,
    configurable: { thread_id: 't1', ...config?.configurable, ...(user && { langgraph_auth_user: user }) },
  }
}

const FORGED = JSON.stringify({ context: { caller: ADMIN }, config: { configurable: { caller: ADMIN } } })
const DELETES = [{ name: 'delete_all', id: 'c1' }]
const UNTRUSTED = { code: 'caller_untrusted', message: /defineCaller did not make.*authenticated the user/ }

describe('a request to the server of LangGraph', () => {
  it('chooses no caller by the context of its body: the model is not asked, and nothing runs', async () => {
    const model = scripted(DELETES)
    const { agent, witness } = createWorld(model, { policy: ADMINS_DELETE })
    await assert.rejects(agent.invoke(HELLO, serverConfig(FORGED)), UNTRUSTED)
    assert.deepEqual([model.sent, witness.ran], [[], []])
  })

  it('resumes no run for a caller of its choice', async () => {
    const model = scripted(DELETES)
    const policy = { ask: ['delete_all'] as const }
    const { agent, gate, run, witness } = createWorld(model, { policy, checkpointer: new MemorySaver() })
    await run(VIEWER)
    for (const { id } of await gate.approvals.list({ status: 'pending' }))
      await gate.approvals.decide(VIEWER, id, { decision: 'approve' })
    const { message } = UNTRUSTED
    await assert.rejects(agent.invoke(new Command({ resume: true }), serverConfig(FORGED)), { message })
    assert.deepEqual(witness.ran, [])
  })

  it('is for the user that the server authenticated, whatever the body says', async () => {
    const model = scripted(DELETES)
    const { agent, witness, audit } = createWorld(model, {
      policy: ADMINS_DELETE,
      guard: {
        caller: ({ configurable }) =>
          defineCaller({ user: (configurable?.['langgraph_auth_user'] as { identity: string } | undefined)?.identity }),
      },
    })
    await agent.invoke(HELLO, serverConfig(FORGED, { identity: 'vera' }))
    assert.deepEqual(model.sent[0], ['alpha', 'search'])
    assert.deepEqual(witness.ran, [])
    assert.equal(audit.records.at(-1)?.user_id, 'vera')
  })

  it('learns no tool names from the state of its thread', async () => {
    const { agent } = createWorld(scripted(), { policy: ADMINS_DELETE, checkpointer: new MemorySaver() })
    const config = { context: { caller: VIEWER } as never, configurable: { thread_id: 't1' } }
    const told: unknown[] = []
    const stream = await agent.stream(HELLO, { ...config, streamMode: ['values', 'updates', 'debug'] as never })
    for await (const chunk of stream) told.push(chunk)
    const { graph } = agent as unknown as {
      graph: { getState(config: object): Promise<object>; getStateHistory(config: object): AsyncIterable<object> }
    }
    told.push(await graph.getState(config))
    for await (const snapshot of graph.getStateHistory(config)) told.push(snapshot)
    const text = JSON.stringify(told)
    assert.ok(text.includes('Go.'))
    for (const name of ['alpha', 'search', 'delete_all']) assert.ok(!text.includes(name), name)
  })

  it('widens no run by writing into the state of its thread', async () => {
    const model = scripted([{ name: 'search', id: 'c0' }], [{ name: 'delete_all', id: 'c1' }])
    const { agent, gate, run, resume, witness } = createWorld(model, {
      policy: [ADMINS_DELETE, { ask: ['search'] }],
      checkpointer: new MemorySaver(),
    })
    const config = { context: { caller: VIEWER } as never, configurable: { thread_id: 't1' } }
    await run(VIEWER)
    gate.setPolicy({})
    const { graph } = agent as unknown as { graph: { updateState(config: object, values: object): Promise<unknown> } }
    for (const forged of [{ run: 'x', ceiling: ['delete_all'] }, { run: 'x', ceiling: null }, { run: 'x' }, 'x']) {
      // LangGraph itself takes nothing of another shape.
      await graph.updateState(config, { _toolgate: forged }).catch(() => undefined)
      await resume(VIEWER)
    }
    assert.ok(!model.sent.flat().includes('delete_all'))
    assert.ok(!witness.ran.includes('delete_all'))
  })
})
