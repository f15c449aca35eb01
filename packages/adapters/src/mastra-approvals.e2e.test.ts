import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { MockMemory } from '@mastra/core/memory'
import { InMemoryStore } from '@mastra/core/storage'
import { createTool } from '@mastra/core/tools'
import { type Caller, createGate, defineCaller, type Gate, type GateOptions } from '@toolgate/core'
import { memoryApprovals } from '@toolgate/core/stores'
import { z } from 'zod'
import { answerToolCall, answerToolCallStream, fromMastra, pausedRun } from './mastra.ts'
import { callOf, contextOf, createScene, createStored } from './testing/mastra-scene.ts'
import type { Turn } from './testing/mock-model.ts'
import { ADMINS_DELETE, createTestAudit, createWitness, VIEWER } from './testing/world.ts'

const ASKS: Pick<GateOptions, 'policy'> = { policy: { ask: ['delete_all'] } }
const DELETES: readonly Turn[] = [[callOf('delete_all', { q: 'x' })], 'done']
const AS_VIEWER = () => ({ requestContext: contextOf(VIEWER) })
const APPROVER: Caller = { user: 'paul', roles: ['approver'] }
const REJECTED = { by: APPROVER, decision: 'reject', reason: 'Not on a Friday.' } as const
const APPROVED = { by: APPROVER, decision: 'approve' } as const

type Output = Parameters<typeof pausedRun>[0]

/** The arguments of Mastra’s own resume. They do not say who has decided. */
function resumeOf(output: Output, caller: Caller = VIEWER) {
  const { runId, toolCallId } = pausedRun(output)
  return { runId, toolCallId, requestContext: contextOf(caller) }
}

async function approvePending(gate: Gate): Promise<void> {
  for (const { id } of await gate.approvals.list({ status: 'pending' }))
    await gate.approvals.decide(APPROVER, id, { decision: 'approve' })
}

describe('approvals in Mastra', () => {
  it('pauses the run, waits for a person, and runs the call once', async () => {
    const { gate, witness, audit } = createScene(ASKS)
    const { agent, model } = createStored(gate, DELETES)
    const paused = await agent.generate('go', AS_VIEWER())
    assert.deepEqual([paused.finishReason, witness.ran], ['suspended', []])
    const [approval] = await gate.approvals.list({ status: 'pending' })
    assert.deepEqual([approval?.tool, approval?.input, approval?.user], ['delete_all', { q: 'x' }, 'vera'])

    const answered = await answerToolCall(agent, pausedRun(paused), { ...APPROVED, ...AS_VIEWER() })
    assert.equal(answered.text, 'done')
    assert.deepEqual(witness.ran, ['delete_all'])
    assert.deepEqual(model.told(), { 'call-delete_all': { type: 'text', value: 'delete_all done' } })
    assert.deepEqual(audit.attempts(), [
      'delete_all tool_approval_required approval_required',
      'delete_all tool_approval_required approval_required',
      'delete_all tool_call',
      'delete_all tool_result',
    ])
    assert.equal((await gate.approvals.get(approval?.id ?? ''))?.status, 'consumed')
  })

  it('lets the user write instead: the call does not run, and the memory stays valid', async () => {
    const { gate, witness } = createScene(ASKS)
    const storage = new InMemoryStore()
    const after = { memory: new MockMemory({ storage }) }
    const { agent, model } = createStored(gate, [DELETES[0] ?? '', 'fine'], { storage, after: after as never })
    const memory = { thread: 't', resource: 'r' }
    assert.equal((await agent.generate('go', { ...AS_VIEWER(), memory })).finishReason, 'suspended')
    assert.equal((await agent.generate('wait', { ...AS_VIEWER(), memory })).text, 'fine')
    const roles = model.requests.at(-1)?.prompt.map(({ role }) => role)
    assert.deepEqual(roles, ['system', 'user', 'user'])
    assert.deepEqual(witness.ran, [])
    assert.equal((await gate.approvals.list())[0]?.status, 'pending')
  })

  it('combines a person’s decision at the gate with Mastra’s own resume', async () => {
    const { gate, witness } = createScene(ASKS)
    const { agent } = createStored(gate, DELETES)
    const paused = await agent.generate('go', AS_VIEWER())
    await approvePending(gate)
    await agent.approveToolCallGenerate(resumeOf(paused))
    assert.deepEqual(witness.ran, ['delete_all'])
  })

  it('does not run a call again that is approved again', async () => {
    const { gate, witness } = createScene(ASKS)
    const { agent } = createStored(gate, DELETES)
    const paused = await agent.generate('go', AS_VIEWER())
    await approvePending(gate)
    await agent.approveToolCallGenerate(resumeOf(paused))
    await agent.approveToolCallGenerate(resumeOf(paused)).catch(() => undefined)
    assert.deepEqual(witness.ran, ['delete_all'])
  })

  it('does not trust the resume: without a person’s decision the run still waits', async () => {
    const { gate, witness } = createScene(ASKS)
    const { agent } = createStored(gate, DELETES)
    const paused = await agent.generate('go', AS_VIEWER())
    const again = await agent.approveToolCallGenerate(resumeOf(paused))
    assert.deepEqual([again.finishReason, witness.ran], ['suspended', []])
    await approvePending(gate)
    assert.equal((await agent.approveToolCallGenerate(resumeOf(again))).text, 'done')
    assert.deepEqual(witness.ran, ['delete_all'])
  })

  it('refuses a call that was hidden since, although a person approved it', async () => {
    const { gate, witness, audit } = createScene(ASKS)
    const { agent, model } = createStored(gate, DELETES)
    const paused = await agent.generate('go', AS_VIEWER())
    await approvePending(gate)
    gate.setPolicy(ADMINS_DELETE)
    await agent.approveToolCallGenerate(resumeOf(paused))
    assert.deepEqual(witness.ran, [])
    const value = 'Tool "delete_all" is not available. Available tools: alpha, search.'
    assert.deepEqual(model.told(), { 'call-delete_all': { type: 'error-text', value } })
    assert.equal(audit.attempts().at(-1), 'delete_all tool_blocked policy_denied')
  })

  it('reads the caller again: a revoked role does not run the tools that it saw', async () => {
    const { gate, witness } = createScene({ policy: [ADMINS_DELETE, { ask: ['delete_all'] }] })
    const admin: Caller = { user: 'vera', roles: ['admin'] }
    const { agent } = createStored(gate, DELETES)
    const paused = await agent.generate('go', { requestContext: contextOf(admin) })
    await approvePending(gate)
    await agent.approveToolCallGenerate(resumeOf(paused, { user: 'vera', roles: [] }))
    assert.deepEqual(witness.ran, [])
  })

  for (const resume of ['approveToolCallGenerate', 'approveToolCall'] as const)
    it(`decides the input, too, for who the caller is by then: ${resume}`, async () => {
      const policy = { deny: [{ match: 'delete_all', input: "input.q == 'all'", unless: "'admin' in caller.roles" }] }
      const { gate, witness, audit } = createScene({ policy: [policy, { ask: ['delete_all'] }] })
      const { agent } = createStored(gate, [[callOf('delete_all', { q: 'all' })], 'done'])
      const paused = await agent.generate('go', { requestContext: contextOf({ user: 'vera', roles: ['admin'] }) })
      await approvePending(gate)
      const resumed = await agent[resume](resumeOf(paused, { user: 'vera', roles: [] }))
      assert.equal(await resumed.text, 'done')
      assert.deepEqual(witness.ran, [])
      assert.equal(audit.attempts().at(-1), 'delete_all tool_blocked input_denied')
    })

  it('does not run another caller’s call with this caller’s approval', async () => {
    const { gate, witness, audit } = createScene(ASKS)
    const { agent } = createStored(gate, DELETES)
    const paused = await agent.generate('go', AS_VIEWER())
    await approvePending(gate)
    await agent.approveToolCallGenerate(resumeOf(paused, { user: 'mallory', roles: [] }))
    assert.deepEqual(witness.ran, [])
    assert.equal(audit.records.at(-1)?.user_id, 'mallory')
  })

  it('holds for one context, too, in which the caller was exchanged', async () => {
    const { gate, witness } = createScene({ policy: [ADMINS_DELETE, { ask: ['delete_all'] }] })
    const { agent } = createStored(gate, DELETES)
    const requestContext = contextOf({ user: 'vera', roles: ['admin'] })
    const paused = await agent.generate('go', { requestContext })
    await approvePending(gate)
    requestContext.set('caller', defineCaller({ user: 'vera', roles: [] }))
    await agent.approveToolCallGenerate({ ...resumeOf(paused), requestContext })
    assert.deepEqual(witness.ran, [])
  })

  it('does not run a tool that `activeTools` leaves out at the resume, which Mastra does', async () => {
    const { gate, witness, audit } = createScene(ASKS)
    const { agent, model } = createStored(gate, DELETES)
    const paused = await agent.generate('go', AS_VIEWER())
    await answerToolCall(agent, pausedRun(paused), { ...APPROVED, ...AS_VIEWER(), activeTools: ['search'] })
    assert.deepEqual(witness.ran, [])
    assert.match(JSON.stringify(model.told()), /delete_all is not active in this step/)
    assert.deepEqual(model.sent().at(-1), ['search'])
    assert.equal(audit.attempts().at(-1), 'delete_all tool_blocked step_inactive')
  })

  it('does not run what the view of the resuming request leaves out', async () => {
    const { gate, witness } = createScene(ASKS)
    const { agent, model } = createStored(gate, DELETES, {
      view: ({ requestContext }) => ({ activeTools: requestContext.get('only') as string[] | undefined }),
    })
    const paused = await agent.generate('go', AS_VIEWER())
    await approvePending(gate)
    const { requestContext, ...resume } = resumeOf(paused)
    requestContext.set('only', ['search'])
    await agent.approveToolCallGenerate({ ...resume, requestContext })
    assert.deepEqual(witness.ran, [])
    assert.deepEqual(model.sent().at(-1), ['search'])
  })

  it('resumes in another process: what both share is the storage and the approvals', async () => {
    const storage = new InMemoryStore()
    const approvals = memoryApprovals()
    const here = createScene({ ...ASKS, approvals })
    const there = createScene({ ...ASKS, approvals })
    const paused = await createStored(here.gate, DELETES, { storage }).agent.generate('go', AS_VIEWER())
    const { agent, model } = createStored(there.gate, ['done'], { storage })
    await answerToolCall(agent, pausedRun(paused), { ...APPROVED, ...AS_VIEWER() })
    assert.deepEqual([here.witness.ran, there.witness.ran], [[], ['delete_all']])
    assert.deepEqual(model.told(), { 'call-delete_all': { type: 'text', value: 'delete_all done' } })
  })

  it('refuses there what is hidden there', async () => {
    const storage = new InMemoryStore()
    const approvals = memoryApprovals()
    const here = createScene({ ...ASKS, approvals })
    const there = createScene({ approvals })
    const paused = await createStored(here.gate, DELETES, { storage }).agent.generate('go', AS_VIEWER())
    await approvePending(here.gate)
    const { agent } = createStored(there.gate, ['done'], { storage })
    await agent.approveToolCallGenerate(resumeOf(paused)).catch(() => undefined)
    assert.deepEqual([here.witness.ran, there.witness.ran], [[], []])
  })

  it('binds an approval to the run that is named', async () => {
    const { gate, witness } = createScene(ASKS)
    const runId = () => names.shift()
    const names = ['first', 'second']
    const first = createStored(gate, DELETES, { runId })
    await first.agent.generate('go', AS_VIEWER())
    await approvePending(gate)
    const second = await createStored(gate, DELETES, { runId }).agent.generate('go', AS_VIEWER())
    assert.deepEqual([second.finishReason, witness.ran], ['suspended', []])
  })

  it('runs nothing that a person declined, and tells the model why', async () => {
    const { gate, witness } = createScene(ASKS)
    const { agent, model } = createStored(gate, DELETES)
    const paused = await agent.generate('go', AS_VIEWER())
    await answerToolCall(agent, pausedRun(paused), { ...REJECTED, ...AS_VIEWER() })
    assert.deepEqual(witness.ran, [])
    assert.match(JSON.stringify(model.told()), /Not on a Friday\./)
    const [approval] = await gate.approvals.list()
    assert.deepEqual([approval?.status, approval?.decidedBy], ['rejected', 'paul'])
  })

  it('does not run what was declined in the gate and approved in Mastra', async () => {
    const { gate, witness } = createScene(ASKS)
    const { agent } = createStored(gate, DELETES)
    const paused = await agent.generate('go', AS_VIEWER())
    const [approval] = await gate.approvals.list({ status: 'pending' })
    await gate.approvals.decide(APPROVER, approval?.id ?? '', { decision: 'reject' })
    await agent.approveToolCallGenerate(resumeOf(paused))
    assert.deepEqual(witness.ran, [])
  })

  it('does not run what was approved in the gate and declined in Mastra', async () => {
    const { gate, witness } = createScene(ASKS)
    const { agent } = createStored(gate, DELETES)
    const paused = await agent.generate('go', AS_VIEWER())
    await approvePending(gate)
    await agent.declineToolCallGenerate(resumeOf(paused))
    assert.deepEqual(witness.ran, [])
  })

  it('leaves the run waiting where the person may not decide', async () => {
    const { gate, witness } = createScene(ASKS)
    const { agent } = createStored(gate, DELETES)
    const paused = await agent.generate('go', AS_VIEWER())
    const stranger = { ...APPROVED, by: { user: 'eve' }, ...AS_VIEWER() }
    await assert.rejects(answerToolCall(agent, pausedRun(paused), stranger), { code: 'approval_forbidden' })
    await answerToolCall(agent, pausedRun(paused), { ...APPROVED, ...AS_VIEWER() })
    assert.deepEqual(witness.ran, ['delete_all'])
  })

  it('streams a resumed run', async () => {
    const { gate, witness } = createScene(ASKS)
    const { agent } = createStored(gate, DELETES)
    const first = await agent.stream('go', AS_VIEWER())
    let asked: unknown
    for await (const chunk of first.fullStream) if (chunk.type === 'tool-call-approval') asked = chunk.payload
    const paused = pausedRun({ runId: first.runId, suspendPayload: asked })
    const second = await answerToolCallStream(agent, paused, { ...APPROVED, ...AS_VIEWER() })
    assert.equal(await second.text, 'done')
    assert.deepEqual(witness.ran, ['delete_all'])
  })

  it('asks for one call of a step after the other', async () => {
    const { gate, witness } = createScene(ASKS)
    const calls = ['a', 'b', 'c'].map((q) => callOf('delete_all', { q }, `call-${q}`))
    const { agent } = createStored(gate, [calls, 'done'])
    let output: Awaited<ReturnType<typeof agent.generate>> = await agent.generate('go', AS_VIEWER())
    for (const q of ['a', 'b', 'c']) {
      assert.deepEqual(pausedRun(output).args, { q })
      output = await answerToolCall(agent, pausedRun(output), { ...APPROVED, ...AS_VIEWER() })
    }
    assert.equal(output.text, 'done')
    assert.equal(witness.ran.length, 3)
  })

  it('pauses for one of several calls whose inputs alone want a person, and tells the model that the others wait', async () => {
    const { gate, witness } = createScene({ policy: { ask: [{ match: 'alpha', input: "input.q != ''" }] } })
    const calls = ['a', 'b'].map((q) => callOf('alpha', { q }, `call-${q}`))
    const { agent, model } = createStored(gate, [calls, 'done'])
    const paused = await agent.generate('go', AS_VIEWER())
    assert.equal((await gate.approvals.list({ status: 'pending' })).length, 2)
    await answerToolCall(agent, pausedRun(paused), { ...APPROVED, ...AS_VIEWER() })
    assert.deepEqual(witness.ran, ['alpha'])
    assert.deepEqual(Object.values(model.told()), [
      { type: 'text', value: 'alpha done' },
      { type: 'error-text', value: 'Waiting for approval of alpha.' },
    ])
  })

  it('is not weakened by a callback of the tool, nor by the options of the call', async () => {
    const witness = createWitness()
    const pay = createTool({
      id: 'pay',
      description: 'Pays.',
      requireApproval: () => false,
      execute: () => Promise.resolve(witness.body('pay')()),
    })
    const gate = createGate({ tools: fromMastra({ pay }), policy: { ask: ['pay'] } })
    const { agent } = createStored(gate, [[callOf('pay')], 'done'])
    const paused = await agent.generate('go', { ...AS_VIEWER(), requireToolApproval: false })
    assert.deepEqual([paused.finishReason, witness.ran], ['suspended', []])
  })

  it('weakens no approval of the user: what Mastra asks for alone is asked for', async () => {
    const { gate, witness } = createScene()
    const { agent } = createStored(gate, [[callOf('search')], 'done'])
    const paused = await agent.generate('go', { ...AS_VIEWER(), requireToolApproval: true })
    assert.deepEqual([paused.finishReason, witness.ran], ['suspended', []])
    await answerToolCall(agent, pausedRun(paused), { ...APPROVED, ...AS_VIEWER(), requireToolApproval: true })
    assert.deepEqual(witness.ran, ['search'])
  })

  it('says what is wrong with an output that waits for nothing, and with an agent without a guard', async () => {
    assert.throws(() => pausedRun({ runId: 'r' }), /output.*is not of a run that waits/)
    const unguarded = { name: 'plain', resolveProcessorById: () => Promise.resolve(null) }
    const paused = { runId: 'r', toolCallId: 'c', toolName: 'x', args: {} }
    await assert.rejects(
      answerToolCall(unguarded as never, paused, { ...APPROVED, ...AS_VIEWER() }),
      /agent.*"plain" was made without/,
    )
  })
})

describe('tools of Mastra that pause by themselves', () => {
  function createBooking() {
    const witness = createWitness()
    const book = createTool({
      id: 'book',
      description: 'Books a table.',
      inputSchema: z.object({ people: z.number() }),
      suspendSchema: z.object({ question: z.string() }),
      resumeSchema: z.object({ time: z.string() }),
      async execute({ people }, { agent }) {
        if (!agent?.resumeData) return agent?.suspend({ question: 'When?' })
        witness.body('book')()
        return `${people} at ${agent.resumeData.time}`
      },
    })
    return { witness, tools: fromMastra({ book }) }
  }
  const BOOKS: readonly Turn[] = [[callOf('book', { people: 2 })], 'done']

  it('pause and go on through the gate', async () => {
    const { witness, tools } = createBooking()
    const audit = createTestAudit()
    const { agent, model } = createStored(createGate({ tools, audit }), BOOKS)
    const paused = await agent.generate('go', AS_VIEWER())
    assert.equal(paused.finishReason, 'suspended')
    assert.match(JSON.stringify(paused.suspendPayload), /When\?/)
    await agent.resumeGenerate({ time: '8 pm' }, { runId: paused.runId ?? '', ...AS_VIEWER() })
    assert.deepEqual(witness.ran, ['book'])
    assert.deepEqual(model.told(), { 'call-book': { type: 'text', value: '2 at 8 pm' } })
    assert.equal(audit.attempts().filter((attempt) => attempt === 'book tool_result').length, 2)
  })

  it('do not go on where they are hidden by then', async () => {
    const { witness, tools } = createBooking()
    const gate = createGate({ tools })
    const { agent } = createStored(gate, BOOKS)
    const paused = await agent.generate('go', AS_VIEWER())
    gate.setPolicy({ deny: ['book'] })
    await agent.resumeGenerate({ time: '8 pm' }, { runId: paused.runId ?? '', ...AS_VIEWER() })
    assert.deepEqual(witness.ran, [])
  })

  it('want a person for each run of their code, who is asked before the answer is given', async () => {
    const { witness, tools } = createBooking()
    const gate = createGate({ tools, policy: { ask: ['book'] } })
    const { agent, model } = createStored(gate, [...BOOKS.slice(0, 1), 'done'])
    const first = await agent.generate('go', AS_VIEWER())
    const second = await answerToolCall(agent, pausedRun(first), { ...APPROVED, ...AS_VIEWER() })
    assert.match(JSON.stringify(second.suspendPayload), /When\?/)
    const view = await gate.view(VIEWER)
    await view.requestApproval({ tool: 'book', input: { people: 2 } })
    await approvePending(gate)
    await agent.resumeGenerate({ time: '8 pm' }, { runId: first.runId ?? '', ...AS_VIEWER() })
    assert.deepEqual(witness.ran, ['book'])
    assert.deepEqual(model.told(), { 'call-book': { type: 'text', value: '2 at 8 pm' } })
  })

  it('lose no answer to a second pause: without a person the model is told to wait', async () => {
    const { witness, tools } = createBooking()
    const gate = createGate({ tools, policy: { ask: ['book'] } })
    const { agent, model } = createStored(gate, BOOKS)
    const first = await agent.generate('go', AS_VIEWER())
    await answerToolCall(agent, pausedRun(first), { ...APPROVED, ...AS_VIEWER() })
    await agent.resumeGenerate({ time: '8 pm' }, { runId: first.runId ?? '', ...AS_VIEWER() })
    assert.deepEqual(witness.ran, [])
    assert.deepEqual(model.told(), { 'call-book': { type: 'error-text', value: 'Waiting for approval of book.' } })
  })
})
