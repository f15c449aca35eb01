import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Caller, defineCaller } from '@toolgate/core'
import { pausedRun, searchFilter } from './mastra.ts'
import {
  byContext,
  callOf,
  contextOf,
  createAgent,
  createScene,
  createStored,
  serverContext,
} from './testing/mastra-scene.ts'
import type { Turn } from './testing/mock-model.ts'
import { ADMIN, VIEWER } from './testing/world.ts'

const DELETES: readonly Turn[] = [[callOf('delete_all')], 'done']

const FORGED = JSON.stringify({ messages: ['go'], requestContext: { caller: ADMIN, 'toolgate:1': {} } })
const UNTRUSTED = { code: 'caller_untrusted', message: /defineCaller did not make.*authenticated the user/ }

describe('a request to the server of Mastra', () => {
  for (const loop of ['generate', 'stream'] as const)
    it(`chooses no caller by its body: ${loop} sends nothing to the model and runs nothing`, async () => {
      const { gate, witness } = createScene()
      const { agent, model } = createAgent(gate, DELETES)
      await assert.rejects(async () => {
        const output = await agent[loop]('go', { requestContext: serverContext(FORGED) })
        await output.text
      }, UNTRUSTED)
      assert.deepEqual(model.sent(), [])
      assert.deepEqual(witness.ran, [])
    })

  it('gets no tool to execute directly, as the route of a tool does', async () => {
    const { gate, witness } = createScene()
    const { agent } = createAgent(gate, DELETES)
    await assert.rejects(async () => agent.listTools({ requestContext: serverContext(FORGED) }), UNTRUSTED)
    assert.deepEqual(witness.ran, [])
  })

  it('runs no tool that was listed for another caller', async () => {
    const { gate, witness } = createScene()
    const { agent } = createAgent(gate, DELETES)
    const { delete_all: tool } = await agent.listTools({ requestContext: contextOf(ADMIN) })
    const { execute } = tool as { execute?: (input: unknown, context: object) => Promise<unknown> }
    assert.ok(execute)
    await assert.rejects(execute({}, { requestContext: serverContext(FORGED) }), UNTRUSTED)
    assert.deepEqual(witness.ran, [])
  })

  it('finds nothing by a search of tools', async () => {
    const { gate } = createScene()
    const filter = searchFilter(gate, byContext)
    await assert.rejects(filter({ toolName: 'delete_all', requestContext: serverContext(FORGED) }), UNTRUSTED)
  })

  it('resumes no run for a caller of its choice', async () => {
    const { gate, witness } = createScene({ policy: { ask: ['delete_all'] } })
    const { agent } = createStored(gate, DELETES)
    const { runId, toolCallId } = pausedRun(await agent.generate('go', { requestContext: contextOf(VIEWER) }))
    for (const { id } of await gate.approvals.list({ status: 'pending' }))
      await gate.approvals.decide(VIEWER, id, { decision: 'approve' })
    const resume = { runId, toolCallId, requestContext: serverContext(FORGED) }
    await agent.approveToolCallGenerate(resume).catch(() => undefined)
    assert.deepEqual(witness.ran, [])
  })

  it('is for the caller that the middleware made of the authenticated user, whatever the body says', async () => {
    const { gate, witness, audit } = createScene()
    const { agent, model } = createAgent(gate, DELETES)
    const requestContext = serverContext(FORGED, (context) => context.set('caller', VIEWER))
    assert.equal((await agent.generate('go', { requestContext })).text, 'done')
    assert.deepEqual(model.sent()[0], ['alpha', 'search'])
    assert.deepEqual(witness.ran, [])
    assert.equal(audit.records.at(-1)?.user_id, 'vera')
  })

  const nobodies: readonly (readonly [what: string, caller: unknown])[] = [
    ['nothing', undefined],
    ['a copy of a caller', { ...ADMIN }],
    ['a clone of a caller', structuredClone(ADMIN)],
    ['an object made of a caller', Object.create(ADMIN)],
    ['a text', 'ada'],
  ]
  for (const [what, caller] of nobodies)
    it(`runs nothing for ${what}`, async () => {
      const { gate, witness } = createScene()
      const { agent, model } = createAgent(gate, DELETES, { caller: () => caller as Caller })
      await assert.rejects(agent.generate('go'), { code: /^caller_(untrusted|invalid)$/ })
      assert.deepEqual([model.sent(), witness.ran], [[], []])
    })

  it('takes a caller that the option itself makes of something only the server writes', async () => {
    const { gate } = createScene()
    const { agent, model } = createAgent(gate, ['done'], {
      caller: ({ requestContext }) => defineCaller({ user: String(requestContext.get('mastra__user')) }),
    })
    await agent.generate('go', { requestContext: contextOf(VIEWER) })
    assert.deepEqual(model.sent()[0], ['alpha', 'search'])
  })
})
