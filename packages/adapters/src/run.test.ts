import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate, defineTool, type GateOptions } from '@toolgate/core'
import { defineTarget } from '@toolgate/expose'
import { createRun, type CreateRunOptions } from './run.ts'
import { ADMINS_DELETE, createTestAudit, createWitness, VIEWER } from './testing/world.ts'

const INPUT = { type: 'object', properties: { q: { type: 'string' } } } as const
const ASKS: GateOptions = { policy: { ask: ['web:search'] } }
const SEARCH = { name: 'web__search', input: { q: 'hinges' }, callId: 'c1' }

async function open(options: GateOptions = {}, runOptions: CreateRunOptions = {}) {
  const witness = createWitness()
  const audit = createTestAudit()
  const gate = createGate({
    tools: [
      defineTool({ name: 'alpha', execute: witness.body('alpha') }),
      defineTool({ name: 'delete_all', execute: witness.body('delete_all') }),
      defineTool({
        namespace: 'web',
        name: 'search',
        description: 'Searches.',
        inputSchema: INPUT,
        execute: witness.body('search'),
      }),
    ],
    policy: ADMINS_DELETE,
    audit,
    ...options,
  })
  return { gate, witness, audit, run: await createRun(gate, VIEWER, runOptions) }
}

describe('createRun', () => {
  it('offers the visible tools under the names for the model, with descriptions and schemas', async () => {
    const { run } = await open()
    const { tools, stepNumber } = await run.next()
    assert.equal(stepNumber, 0)
    assert.deepEqual(
      tools.map(({ name, description }) => [name, description]),
      [
        ['alpha', ''],
        ['web__search', 'Searches.'],
      ],
    )
    assert.deepEqual(tools[1]?.inputSchema, INPUT)
  })

  it('offers them in the form of a target of the host', async () => {
    const { gate } = await open()
    const target = defineTarget({ name: 'mine', shape: ({ name }) => ({ called: name }) })
    const run = await createRun(gate, VIEWER, { target })
    const { tools } = await run.next()
    assert.deepEqual(
      tools.map(({ called }) => called),
      ['alpha', 'web__search'],
    )
  })

  it('answers a call with its text and output, on record by the run', async () => {
    const { run, audit } = await open({}, { runId: 'r1', model: 'm1' })
    await run.next()
    const answer = await run.call(SEARCH)
    assert.deepEqual(answer, {
      text: 'search done',
      ok: true,
      status: 'done',
      output: 'search done',
      approval: undefined,
    })
    assert.deepEqual(audit.attempts(), ['web:search tool_call', 'web:search tool_result'])
    assert.ok(
      audit.records.every(({ run_id, step, tool_call_id }) => run_id === 'r1' && step === 0 && tool_call_id === 'c1'),
    )
  })

  it('answers a call of a hidden or unknown tool with a refusal, on record, and runs nothing', async () => {
    const { run, witness, audit } = await open()
    await run.next()
    for (const name of ['delete_all', 'nothing', '__proto__']) {
      const { status, ok, text, output } = await run.call({ name, input: {} })
      assert.deepEqual([status, ok, output], ['refused', false, undefined])
      assert.match(text, /is not available\. Available tools: /)
      assert.doesNotMatch(text.replace(`"${name}"`, ''), /delete_all/)
    }
    assert.deepEqual(witness.ran, [])
    assert.deepEqual(audit.attempts(), [
      'delete_all tool_blocked policy_denied',
      'nothing tool_blocked tool_not_found',
      '__proto__ tool_blocked tool_not_found',
    ])
  })

  it('narrows a step by prepareStep, and refuses what the step does not offer', async () => {
    const { run, witness } = await open(
      {},
      { prepareStep: ({ hasUsedTool }) => (hasUsedTool('alpha') ? undefined : { activeTools: ['alpha'] }) },
    )
    const namesOf = async () => (await run.next()).tools.map(({ name }) => name)
    assert.deepEqual(await namesOf(), ['alpha'])
    assert.equal((await run.call(SEARCH)).status, 'refused')
    await run.call({ name: 'alpha', input: {} })
    assert.deepEqual(await namesOf(), ['alpha', 'web__search'])
    assert.equal((await run.call(SEARCH)).status, 'done')
    assert.deepEqual(witness.ran, ['alpha', 'search'])
  })

  it('waits for a person, and runs the same call once when it is approved', async () => {
    const { gate, run, witness } = await open(ASKS)
    await run.next()
    const waiting = await run.call(SEARCH)
    assert.equal(waiting.status, 'waiting')
    assert.deepEqual(witness.ran, [])
    await gate.approvals.decide(VIEWER, waiting.approval?.id ?? '', { decision: 'approve' })
    assert.equal((await run.call(SEARCH)).text, 'search done')
    assert.equal((await run.call(SEARCH)).status, 'waiting')
    assert.deepEqual(witness.ran, ['search'])
  })

  it('binds approvals to its id: only a run with the same id resumes', async () => {
    const { gate, run, witness } = await open(ASKS, { runId: 'r1' })
    await run.next()
    const { approval } = await run.call(SEARCH)
    await gate.approvals.decide(VIEWER, approval?.id ?? '', { decision: 'approve' })
    for (const [runId, status] of [
      ['r2', 'waiting'],
      ['r1', 'done'],
    ] as const) {
      const resumed = await createRun(gate, VIEWER, { runId })
      await resumed.next()
      assert.equal((await resumed.call(SEARCH)).status, status)
    }
    assert.deepEqual(witness.ran, ['search'])
  })

  it('asks a person without running anything, for frameworks that ask first', async () => {
    const { gate, run, witness } = await open(ASKS)
    await run.next()
    assert.equal(await run.requestApproval({ name: 'alpha', input: {} }), undefined)
    const asked = await run.requestApproval(SEARCH)
    assert.equal(asked?.status, 'waiting')
    await gate.approvals.decide(VIEWER, asked.approval?.id ?? '', { decision: 'approve' })
    assert.equal(await run.requestApproval(SEARCH), undefined)
    assert.deepEqual(witness.ran, [])
    assert.equal((await run.call(SEARCH)).status, 'done')
  })

  it('ends when its signal is aborted; the signal of a call cancels that call only', async () => {
    const ending = new AbortController()
    const { run, witness } = await open({}, { signal: ending.signal })
    await run.next()
    const own = AbortSignal.abort(new Error('not this one'))
    assert.equal((await run.call({ ...SEARCH, signal: own })).ok, false)
    assert.equal((await run.call(SEARCH)).ok, true)
    ending.abort(new Error('the end'))
    assert.equal((await run.call(SEARCH)).ok, false)
    assert.equal((await run.call({ ...SEARCH, signal: new AbortController().signal })).ok, false)
    assert.deepEqual(witness.ran, ['search'])
  })

  it('takes arguments as JSON, and refuses a text that is not JSON', async () => {
    const { run, witness } = await open()
    await run.next()
    assert.equal((await run.call({ ...SEARCH, input: '{"q":"hinges"}' })).ok, true)
    assert.match((await run.call({ ...SEARCH, input: '{"q":' })).text, /not JSON/)
    assert.deepEqual(witness.ran, ['search'])
  })

  it('answers with the last item of a stream, and with the failure of one that breaks off', async () => {
    const gate = createGate({
      tools: {
        counts: {
          async *execute() {
            yield 1
            yield 2
          },
        },
        breaks: {
          async *execute() {
            yield 1
            throw new Error('cut off')
          },
        },
      },
    })
    const run = await createRun(gate, VIEWER)
    await run.next()
    assert.deepEqual((await run.call({ name: 'counts', input: {} })).output, 2)
    const broken = await run.call({ name: 'breaks', input: {} })
    assert.deepEqual([broken.status, broken.output], ['failed', undefined])
    assert.match(broken.text, /cut off/)
  })
})
