import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { CreateRunOptions } from '@toolgate/adapters/run'
import { type Caller, createGate, defineTool, memoryAudit, type Policy } from '@toolgate/core'
import { genkit, type MessageData, type Part, respondTool, restartTool, z } from 'genkit'
import { describeExample } from '../support/describe-example.ts'
import { guard } from './adapter.ts'

const VIEWER: Caller = { user: 'vera', roles: ['viewer'] }
const HIDDEN: Policy = { deny: ['remove'] }
const ASKS: Policy = { ask: ['pay'], deny: ['remove'] }
const PAY = call('pay', { cents: 500 })

/** A gate with three tools, and Genkit with a model that says what is scripted. */
function setUp(policy: Policy, ...script: Part[][]) {
  const ran: string[] = []
  const audit = memoryAudit()
  const tools = ['search', 'pay', 'remove'].map((name) =>
    defineTool({
      name,
      execute: (input) => {
        ran.push(`${name} ${JSON.stringify(input)}`)
        return `${name} done`
      },
    }),
  )
  const gate = createGate({ tools, policy, audit })
  const ai = genkit({})
  const offered: string[][] = []
  const requests: string[] = []
  let beforeTurn = (_turn: number): void => {}
  const model = ai.defineModel({ name: 'scripted', supports: { tools: true } }, async (request) => {
    offered.push((request.tools ?? []).map(({ name }) => name))
    requests.push(JSON.stringify(request))
    beforeTurn(offered.length)
    return { message: { role: 'model', content: script.shift() ?? [{ text: 'Done.' }] }, finishReason: 'stop' }
  })
  const use = async (options: CreateRunOptions = {}) => [await guard(gate, VIEWER, { runId: 'r1', ...options })]
  return {
    gate,
    ai,
    model,
    use,
    ran,
    offered,
    requests,
    run: async (more: object = {}) => ai.generate({ model, prompt: 'Go.', use: await use(), ...more }),
    resume: async (messages: MessageData[], resume: object) =>
      ai.generate({ model, messages, resume, use: await use() }),
    onTurn: (listener: (turn: number) => void) => (beforeTurn = listener),
    attempts: () =>
      audit.records
        .filter(({ tool_call_id }) => tool_call_id !== undefined)
        .map(({ tool: id, event, reason = '' }) => `${id} ${event} ${reason}`.trim()),
    async approve() {
      for (const { id } of await gate.approvals.list({ status: 'pending' }))
        await gate.approvals.decide(VIEWER, id, { decision: 'approve' })
    },
  }
}

function call(name: string, input: object = {}, ref = `call_${name}`): Part {
  return { toolRequest: { name, ref, input } }
}

function toldOf(messages: readonly MessageData[]): readonly unknown[] {
  return messages.flatMap(({ content }) => content.flatMap(({ toolResponse }) => toolResponse?.output ?? []))
}

describeExample(import.meta.dirname)

describe('the adapter for Genkit', () => {
  it('offers what is visible, runs nothing else, and the model is told', async () => {
    const { run, offered, requests, ran, attempts } = setUp(HIDDEN, [call('remove', { all: true })], [call('search')])
    const { text, messages } = await run()
    assert.equal(text, 'Done.')
    assert.deepEqual(offered.join('; '), 'pay,search; pay,search; pay,search')
    assert.doesNotMatch(requests[0] ?? '', /remove/)
    assert.deepEqual(toldOf(messages), ['Tool "remove" is not available. Available tools: search, pay.', 'search done'])
    assert.deepEqual(ran, ['search {}'])
    assert.deepEqual(attempts(), ['remove tool_blocked policy_denied', 'search tool_call', 'search tool_result'])
  })

  for (const name of ['nothing', 'constructor', '__proto__', 'unknown_tool'])
    it(`refuses ${name}, with a record, and the run goes on`, async () => {
      const { run, ran, attempts } = setUp(HIDDEN, [call(name)], [call('search')])
      const { text, messages } = await run()
      assert.equal(text, 'Done.')
      assert.ok(String(toldOf(messages)[0]).startsWith(`Tool "${name}" is not available.`))
      assert.deepEqual(ran, ['search {}'])
      assert.equal(attempts()[0], `${name} tool_blocked tool_not_found`)
    })

  it('neither offers nor runs a tool that is not of the gate', async () => {
    const { ai, run, offered, attempts } = setUp(HIDDEN, [call('aside')])
    let ran = false
    const aside = ai.defineTool({ name: 'aside', description: 'Past the gate.', inputSchema: z.any() }, async () => {
      ran = true
    })
    await run({ tools: [aside] })
    assert.deepEqual(offered[0], ['pay', 'search'])
    assert.equal(ran, false)
    assert.deepEqual(attempts(), ['aside tool_blocked tool_not_found'])
  })

  it('offers in each turn what is permitted by then, and refuses what was hidden meanwhile', async () => {
    const { gate, run, onTurn, offered, ran } = setUp(HIDDEN, [call('search')], [call('pay')])
    onTurn((turn) => turn === 2 && gate.setPolicy({ deny: ['pay', 'remove'] }))
    await run()
    assert.deepEqual(offered, [['pay', 'search'], ['pay', 'search'], ['search']])
    assert.deepEqual(ran, ['search {}'])
  })

  it('pauses for an approval with an interrupt, and runs the call once when it is approved and resumed', async () => {
    const { gate, run, resume, approve, ran, attempts } = setUp(ASKS, [call('search'), PAY])
    const paused = await run()
    assert.equal(paused.finishReason, 'interrupted')
    const [interrupt] = paused.interrupts
    const [pending] = await gate.approvals.list({ status: 'pending' })
    assert.deepEqual(interrupt?.metadata?.['interrupt'], { approval: pending?.id })
    assert.deepEqual(ran, ['search {}'])
    await approve()
    const saved = JSON.parse(JSON.stringify(paused.messages)) as MessageData[]
    const { text } = await resume(saved, { restart: paused.interrupts.map((one) => restartTool(one)) })
    assert.equal(text, 'Done.')
    assert.deepEqual(ran, ['search {}', 'pay {"cents":500}'])
    assert.deepEqual(attempts().slice(-2), ['pay tool_call', 'pay tool_result'])
  })

  it('takes no approval from what a client sends back', async () => {
    const { run, resume, approve, ran, attempts } = setUp(ASKS, [PAY])
    const { messages, interrupts } = await run()
    const [interrupt] = interrupts
    assert.ok(interrupt)
    const forged = restartTool(interrupt, { approved: true, decision: 'approve' })
    const undecided = await resume(structuredClone(messages), { restart: [forged] })
    assert.deepEqual(toldOf(undecided.messages), ['Waiting for approval of pay.'])
    await approve()
    const changed = restartTool(interrupt, undefined, { replaceInput: { cents: 900_000 } })
    const other = await resume(structuredClone(messages), { restart: [changed] })
    assert.deepEqual(toldOf(other.messages), ['Waiting for approval of pay.'])
    await resume(structuredClone(messages), { respond: [respondTool(interrupt, 'paid 500 cents')] })
    assert.deepEqual(ran, [])
    assert.deepEqual(new Set(attempts()), new Set(['pay tool_approval_required approval_required']))
  })

  it('does not run an approved call whose tool is hidden by then', async () => {
    const { gate, run, resume, approve, offered, ran, attempts } = setUp(ASKS, [PAY])
    const paused = await run()
    await approve()
    gate.setPolicy({ deny: ['pay', 'remove'] })
    const { messages } = await resume(paused.messages, { restart: paused.interrupts.map((one) => restartTool(one)) })
    assert.match(String(toldOf(messages)[0]), /^Tool "pay" is not available/)
    assert.deepEqual(offered.at(-1), ['search'])
    assert.deepEqual(ran, [])
    assert.equal(attempts().at(-1), 'pay tool_blocked policy_denied')
  })

  it('runs nothing after the abort of a generation', async () => {
    const { run, onTurn, ran } = setUp(HIDDEN, [call('search')], [call('pay')])
    const ending = new AbortController()
    onTurn((turn) => turn === 2 && ending.abort(new Error('the end')))
    await run({ abortSignal: ending.signal }).catch(() => undefined)
    assert.deepEqual(ran, ['search {}'])
  })
})
