import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ConfigError, createGate, type Gate } from '@toolgate/core'
import {
  convertToModelMessages,
  generateText,
  type ModelMessage,
  readUIMessageStream,
  streamText,
  tool,
  toUIMessageStream,
  type ToolSet,
  type UIMessage,
} from 'ai'
import { z } from 'zod'
import { applyApprovals, fromAiSdk, guard } from '../ai-sdk.ts'
import { needsApproval } from './approval.ts'
import { wrapExecute } from './guard.ts'
import { LoopRun } from './run.ts'
import { answer, createAiSdkWorld, forge, stopWhen } from '../testing/ai-sdk-world.ts'
import { mockModel, type Turn } from '../testing/mock-model.ts'
import { ADMIN, createTestAudit, createWitness, VIEWER } from '../testing/world.ts'

const ASKS = { policy: { ask: ['delete_all'] } }
const prompt: ModelMessage[] = [{ role: 'user', content: 'Delete it.' }]
const call = [{ name: 'delete_all', input: { q: 'x' } }]

/** Runs until the SDK pauses, and returns the messages so far. */
async function pause(gate: Gate): Promise<ModelMessage[]> {
  const result = await generateText({
    model: mockModel([call]),
    messages: prompt,
    stopWhen,
    ...(await guard(gate, VIEWER)),
  })
  assert.equal(result.content.at(-1)?.type, 'tool-approval-request')
  return [...prompt, ...result.responseMessages]
}

const GONE = 'TOOL_CALL_BLOCKED: its approval is no longer valid; call again to ask for one'

describe('toolApproval of guard', () => {
  it('pauses the SDK where a person must approve, and runs the call once when one has', async () => {
    const { gate, witness, audit } = createAiSdkWorld(ASKS)
    const messages = await pause(gate)
    assert.deepEqual(witness.ran, [])
    const [pending] = await gate.approvals.list({ status: 'pending' })
    assert.deepEqual(pending?.input, { q: 'x' })
    await gate.approvals.decide(VIEWER, pending?.id ?? '', { decision: 'approve' })

    const model = mockModel(['Deleted.'])
    const options = { model, messages: answer(messages, true), stopWhen }
    const result = await generateText({ ...options, ...(await guard(gate, VIEWER)) })
    assert.equal(result.text, 'Deleted.')
    assert.deepEqual(witness.ran, ['delete_all'])
    assert.deepEqual(model.told(), { 'call-0': { type: 'text', value: 'delete_all done' } })

    await generateText({ ...options, ...(await guard(gate, VIEWER)) })
    await applyApprovals(gate, VIEWER, options.messages)
    await generateText({ ...options, ...(await guard(gate, VIEWER)) })
    assert.deepEqual(witness.ran, ['delete_all'], 'a replay runs nothing')
    assert.deepEqual(model.told(), { 'call-0': { type: 'execution-denied', reason: GONE } })
    assert.deepEqual(audit.attempts(), [
      'delete_all tool_approval_required approval_required',
      'delete_all tool_call',
      'delete_all tool_result',
      'delete_all tool_blocked approval_used',
      'delete_all tool_blocked approval_used',
    ])
  })

  it('does the same in a stream', async () => {
    const { gate, witness } = createAiSdkWorld(ASKS)
    const paused = streamText({ model: mockModel([call]), messages: prompt, stopWhen, ...(await guard(gate, VIEWER)) })
    await paused.consumeStream()
    const messages = answer([...prompt, ...(await paused.responseMessages)], true)
    assert.deepEqual(
      (await applyApprovals(gate, VIEWER, messages)).map(({ tool: id, approval }) => [id, approval?.status]),
      [['delete_all', 'approved']],
    )
    const result = streamText({ model: mockModel(['Deleted.']), messages, stopWhen, ...(await guard(gate, VIEWER)) })
    await result.consumeStream()
    assert.equal(await result.text, 'Deleted.')
    assert.deepEqual(witness.ran, ['delete_all'])
  })

  it('does not take the word of the messages: an approval that nobody gave runs nothing', async () => {
    const { gate, witness, audit } = createAiSdkWorld(ASKS)
    const model = mockModel(['Hm.'])
    await generateText({ model, messages: forge('delete_all'), stopWhen, ...(await guard(gate, VIEWER)) })
    await generateText({ model, messages: answer(await pause(gate), true), stopWhen, ...(await guard(gate, VIEWER)) })
    const { toolApproval: _, ...without } = await guard(gate, VIEWER)
    await generateText({ model, messages: forge('delete_all'), stopWhen, ...without })
    await generateText({
      model,
      messages: forge('delete_all'),
      stopWhen,
      ...(await guard(gate, VIEWER)),
      toolApproval: () => 'approved',
    })
    assert.deepEqual(witness.ran, [])
    assert.deepEqual(model.told()['forged'], { type: 'error-text', value: GONE })
    const [unasked, asked, waits, ...others] = audit.attempts()
    assert.equal(unasked, 'delete_all tool_blocked approval_used')
    assert.deepEqual([asked, waits], Array(2).fill('delete_all tool_approval_required approval_required'))
    assert.deepEqual(others, [unasked, unasked])
    // It asked nobody, so there is nothing that the next one could approve.
    assert.equal((await applyApprovals(gate, VIEWER, forge('delete_all')))[0]?.problem, 'approval_unknown')
  })

  it('refuses on resume a call that was approved and has been hidden since', async () => {
    const { gate, witness, audit } = createAiSdkWorld(ASKS)
    const messages = answer(await pause(gate), true)
    await applyApprovals(gate, VIEWER, messages)
    gate.setPolicy({ deny: ['delete_all'] })
    const model = mockModel(['Hm.'])
    await generateText({ model, messages, stopWhen, ...(await guard(gate, VIEWER)) })
    assert.deepEqual(witness.ran, [])
    assert.deepEqual(model.told(), {
      'call-0': {
        type: 'execution-denied',
        reason: 'Tool "delete_all" is not available. Available tools: alpha, search.',
      },
    })
    assert.equal(audit.attempts().at(-1), 'delete_all tool_blocked policy_denied')
  })

  it('refuses a call that was approved for another input, another person, or another run', async () => {
    const { gate, witness } = createAiSdkWorld(ASKS)
    const messages = answer(await pause(gate), true)
    await applyApprovals(gate, VIEWER, messages)
    const changed = JSON.parse(JSON.stringify(messages).replace('"x"', '"everything"')) as ModelMessage[]
    const model = mockModel(['Hm.'])
    await generateText({ model, messages: changed, stopWhen, ...(await guard(gate, VIEWER)) })
    await generateText({ model, messages, stopWhen, ...(await guard(gate, { user: 'eve' })) })
    await generateText({ model, messages, stopWhen, ...(await guard(gate, VIEWER, { runId: 'another' })) })
    assert.deepEqual(witness.ran, [])
  })

  it('runs nothing that a person denies, and tells the model why', async () => {
    const { gate, witness } = createAiSdkWorld(ASKS)
    const messages = answer(await pause(gate), false, 'Too much.')
    const [applied] = await applyApprovals(gate, VIEWER, messages)
    assert.equal(applied?.approval?.status, 'rejected')
    const model = mockModel([call, 'Hm.'])
    await generateText({ model, messages, stopWhen, ...(await guard(gate, VIEWER)) })
    assert.deepEqual(witness.ran, [])
    assert.deepEqual(model.requests[0]?.prompt.at(-1)?.content, [
      {
        type: 'tool-result',
        toolCallId: 'call-0',
        toolName: 'delete_all',
        output: { type: 'execution-denied', reason: 'Too much.' },
        providerOptions: undefined,
      },
    ])
  })

  it('runs a call at once that a person has already approved, when the model makes it again', async () => {
    const { gate, witness } = createAiSdkWorld(ASKS)
    await pause(gate)
    const [pending] = await gate.approvals.list()
    await gate.approvals.decide(VIEWER, pending?.id ?? '', { decision: 'approve' })
    await generateText({
      model: mockModel([call, 'Done.']),
      messages: prompt,
      stopWhen,
      ...(await guard(gate, VIEWER)),
    })
    assert.deepEqual(witness.ran, ['delete_all'])
  })

  it('runs an approved input as the model wrote it, even if the tool’s schema transforms it', async () => {
    const seen: unknown[] = []
    const pay = tool({
      inputSchema: z.object({ cents: z.string().transform(Number), currency: z.string().default('EUR') }),
      execute: (input) => void seen.push(input),
    })
    const gate = createGate({ tools: fromAiSdk({ pay }), policy: { ask: ['pay'] } })
    const options = { stopWhen, messages: prompt, ...(await guard(gate, VIEWER)) }
    const paused = await generateText({ ...options, model: mockModel([[{ name: 'pay', input: { cents: '5' } }]]) })
    const messages = answer([...prompt, ...paused.responseMessages], true)
    assert.equal((await applyApprovals(gate, VIEWER, messages))[0]?.problem, undefined)
    await generateText({ ...options, ...(await guard(gate, VIEWER)), messages, model: mockModel(['Paid.']) })
    assert.deepEqual(seen, [{ cents: 5, currency: 'EUR' }])
  })

  it('binds an approval to what the model wrote, if JSON cannot express what the schema makes of it', async () => {
    const seen: unknown[] = []
    const book = tool({
      inputSchema: z.object({ at: z.string().transform((text) => new Date(text)), for: z.array(z.string()) }),
      execute: (input) => void seen.push(input),
    })
    const gate = createGate({ tools: fromAiSdk({ book }), policy: { ask: ['book'] } })
    const asked: unknown[] = []
    const toolApproval = { book: (given: object) => void asked.push(given) }
    const open = async () => ({ stopWhen, ...(await guard(gate, VIEWER, { toolApproval })) })
    const input = { at: '2026-01-01', for: ['ada'] }
    const model = mockModel([[{ name: 'book', input }]])
    const paused = await generateText({ messages: prompt, model, ...(await open()) })
    assert.deepEqual(paused.toolCalls[0]?.input, input)
    // As a client sends them back: in JSON.
    const sent = JSON.stringify(answer([...prompt, ...paused.responseMessages], true))
    const messages = JSON.parse(sent) as ReturnType<typeof answer>
    const [applied] = await applyApprovals(gate, VIEWER, messages)
    assert.deepEqual(applied?.approval?.input, input)
    await generateText({ messages, model: mockModel(['Booked.']), ...(await open()) })
    const parsed = { at: new Date('2026-01-01'), for: ['ada'] }
    assert.deepEqual([seen, asked], [[parsed], [parsed, parsed]])
  })

  it('is the stricter of yours and the gate’s, and a call that yours leaves to a person waits in the store too', async () => {
    const statuses = {
      denied: { type: 'denied', reason: 'Not on Sundays.' },
      approved: 'approved',
      'user-approval': 'user-approval',
      'not-applicable': 'not-applicable',
    } as const
    const seen: Record<string, unknown> = {}
    for (const [name, status] of Object.entries(statuses))
      for (const asks of [true, false]) {
        const { gate, witness, audit } = createAiSdkWorld(asks ? ASKS : { policy: [] })
        const model = mockModel([call, 'Done.'])
        const guarded = await guard(gate, VIEWER, { toolApproval: { delete_all: status } })
        await generateText({ model, messages: prompt, stopWhen, ...guarded })
        seen[`${name}, ${asks ? 'asked' : 'allowed'}`] = [witness.ran.length, ...audit.attempts().slice(0, 1)]
      }
    const waits = [0, 'delete_all tool_approval_required approval_required']
    assert.deepEqual(seen, {
      'denied, asked': [0, 'delete_all tool_blocked hook_denied'],
      'denied, allowed': [0, 'delete_all tool_blocked hook_denied'],
      'approved, asked': waits,
      'approved, allowed': [1, 'delete_all tool_call'],
      'user-approval, asked': waits,
      'user-approval, allowed': waits,
      'not-applicable, asked': waits,
      'not-applicable, allowed': [1, 'delete_all tool_call'],
    })
  })

  it('throws for an unknown answer, and runs nothing', async () => {
    for (const unknown of ['aproved', true, 1, {}, { type: 'yes' }]) {
      const { gate, witness } = createAiSdkWorld({ policy: [] })
      const toolApproval = () => unknown as 'approved'
      const guarded = await guard(gate, VIEWER, { toolApproval })
      const run = generateText({ model: mockModel([call, 'Done.']), messages: prompt, stopWhen, ...guarded })
      await assert.rejects(run, (error) => error instanceof ConfigError && /toolApproval/.test(error.message))
      assert.deepEqual(witness.ran, [])
    }
  })

  it('gives the model your reason, or the gate’s text if the gate would refuse', async () => {
    const { gate, tools } = createAiSdkWorld()
    const toolApproval = () => ({ type: 'denied', reason: 'Not on Sundays.' }) as const
    const model = mockModel([[{ name: 'search' }], 'Done.'])
    await generateText({ model, messages: prompt, stopWhen, ...(await guard(gate, VIEWER, { toolApproval })) })
    assert.deepEqual(model.told(), { 'call-0': { type: 'execution-denied', reason: 'Not on Sundays.' } })
    await generateText({
      model,
      messages: forge('delete_all'),
      stopWhen,
      ...(await guard(gate, VIEWER, { toolApproval })),
    })
    assert.match(JSON.stringify(model.told()['forged']), /is not available/)
    assert.ok(tools['search'])
  })

  it('ignores a forged approval of a call that yours leaves to a person', async () => {
    const { gate, witness } = createAiSdkWorld({ policy: [] })
    const options = { toolApproval: { delete_all: 'user-approval' } } as const
    const model = mockModel(['Hm.'])
    await generateText({ model, messages: forge('delete_all'), stopWhen, ...(await guard(gate, VIEWER, options)) })
    const streamed = { messages: forge('delete_all'), stopWhen, ...(await guard(gate, VIEWER, options)) }
    await streamText({ model, ...streamed }).consumeStream()
    assert.deepEqual(witness.ran, [])
    assert.ok(JSON.stringify(model.told()['forged']).includes(GONE))
    assert.equal((await applyApprovals(gate, VIEWER, forge('delete_all')))[0]?.problem, 'approval_unknown')
    await generateText({ model, messages: forge('delete_all'), stopWhen, ...(await guard(gate, VIEWER, options)) })
    assert.deepEqual(witness.ran, [])
  })

  it('runs a streamed call that yours leaves to a person only when one has approved it, and once', async () => {
    const { gate, witness } = createAiSdkWorld({ policy: [] })
    const go = async (messages: ModelMessage[], turns: readonly Turn[]) => {
      const guarded = await guard(gate, VIEWER, { toolApproval: { delete_all: 'user-approval' } })
      const result = streamText({ model: mockModel(turns), messages, stopWhen, ...guarded })
      await result.consumeStream()
      return result.responseMessages
    }
    const messages = answer([...prompt, ...(await go(prompt, [call]))], true)
    await go(messages, ['Hm.'])
    assert.deepEqual(witness.ran, [])
    await applyApprovals(gate, VIEWER, messages)
    await go(messages, ['Deleted.'])
    await go(messages, ['Hm.'])
    assert.deepEqual(witness.ran, ['delete_all'])
  })

  it('asks the tool’s own needsApproval', async () => {
    const witness = createWitness()
    const audit = createTestAudit()
    const isAsked = (input: { q?: string | undefined }) => input.q === 'x'
    const inputSchema = z.object({ q: z.string().optional() })
    const tools = { delete_all: tool({ inputSchema, needsApproval: isAsked, execute: witness.body('delete_all') }) }
    const gate = createGate({ tools: fromAiSdk(tools), audit })
    await pause(gate as unknown as Gate)
    await generateText({
      model: mockModel([[{ name: 'delete_all' }], 'Done.']),
      prompt: 'p',
      ...(await guard(gate, VIEWER)),
    })
    assert.deepEqual(witness.ran, ['delete_all'])
    assert.equal(audit.attempts()[0], 'delete_all tool_approval_required approval_required')
  })

  it('lets the user write instead: nothing runs, the messages stay valid, and the approval still waits', async () => {
    const { gate, witness } = createAiSdkWorld(ASKS)
    const open = async () => ({ stopWhen, ...(await guard(gate, VIEWER)) })
    const both = [{ name: 'search' }, ...call]
    const paused = await generateText({ model: mockModel([both]), messages: prompt, ...(await open()) })
    const model = mockModel([[{ name: 'search' }], 'Fine.'])
    const written: ModelMessage[] = [...prompt, ...paused.responseMessages, { role: 'user', content: 'Wait.' }]
    const result = await generateText({ model, messages: written, ...(await open()) })
    assert.equal(result.text, 'Fine.')
    assert.deepEqual(witness.ran, ['search', 'search'])
    const reason =
      'It did not run, because the user wrote instead of approving it. Call it again if it is still wanted.'
    for (const { prompt: sent } of model.requests)
      assert.deepEqual(
        sent
          .flatMap(({ role, content }) => (role === 'tool' ? content : []))
          .flatMap((part) => ('output' in part ? [[part.toolName, part.output]] : []))
          .slice(0, 2),
        [
          ['delete_all', { type: 'execution-denied', reason }],
          ['search', { type: 'text', value: 'search done' }],
        ],
      )
    const [waiting] = await gate.approvals.list({ status: 'pending' })
    await gate.approvals.decide(VIEWER, waiting?.id ?? '', { decision: 'approve' })
    await generateText({ model: mockModel([call, 'Done.']), messages: prompt, ...(await open()) })
    assert.deepEqual(witness.ran, ['search', 'search', 'delete_all'])
  })

  it('pauses even if your toolApproval comes after the spread and has no answer', async () => {
    const { gate, witness } = createAiSdkWorld(ASKS)
    const open = async () => ({
      ...(await guard(gate, VIEWER)),
      stopWhen,
      toolApproval: { search: 'approved' } as const,
    })
    const paused = await generateText({ model: mockModel([call, 'Hm.']), messages: prompt, ...(await open()) })
    assert.deepEqual(witness.ran, [])
    assert.equal((await gate.approvals.list({ status: 'pending' })).length, 1)
    const messages = answer([...prompt, ...paused.responseMessages], true)
    await applyApprovals(gate, VIEWER, messages)
    await generateText({ model: mockModel(['Done.']), messages, ...(await open()) })
    assert.deepEqual(witness.ran, ['delete_all'])
  })

  it('leaves calls alone that the provider has run', async () => {
    const audit = createTestAudit()
    const web = { type: 'provider', id: 'openai.web', args: {}, isProviderExecuted: true, inputSchema: z.object({}) }
    const tools = { web } as unknown as ToolSet
    const gate = createGate({ tools: fromAiSdk(tools), policy: { ask: ['web'] }, audit })
    const model = mockModel([[{ name: 'web', result: { hits: 3 } }], 'Done.'])
    const guarded = await guard(gate, VIEWER, { acceptUnenforceable: true })
    const result = await generateText({ model, messages: prompt, stopWhen, ...guarded })
    assert.deepEqual(
      result.content.map(({ type }) => type),
      ['tool-call', 'tool-result'],
    )
    assert.deepEqual(audit.attempts(), [])
  })
})

describe('needsApproval, by which version 6 of the SDK asks', () => {
  const own = () => {
    const witness = createWitness()
    const audit = createTestAudit()
    const inputSchema = z.object({ q: z.string().optional() })
    const tools = { pay: tool({ inputSchema, needsApproval: ({ q }) => q === 'x', execute: witness.body('pay') }) }
    return { witness, audit, gate: createGate({ tools: fromAiSdk(tools), audit }) as unknown as Gate }
  }

  it('returns true for a call that must wait, once, and for one that the messages approve', async () => {
    const { gate, audit } = createAiSdkWorld(ASKS)
    const run = new LoopRun({ gate, view: await gate.view(VIEWER), options: {}, wrap: wrapExecute })
    const asks = (name: string, messages: readonly unknown[] = []) =>
      needsApproval(run, name)({}, { toolCallId: 'forged', messages })
    assert.deepEqual([await asks('delete_all'), await asks('search')], [true, false])
    assert.equal(await asks('delete_all', forge('delete_all')), true)
    assert.deepEqual(audit.attempts(), ['delete_all tool_approval_required approval_required'])
  })

  it('asks the tool itself too, and a call that it leaves to a person waits in the store', async () => {
    const { gate, witness, audit } = own()
    const run = new LoopRun({ gate, view: await gate.view(VIEWER), options: {}, wrap: wrapExecute })
    const offered = run.offered('pay')
    assert.ok(offered)
    const armed = wrapExecute(run, offered) as Armed
    const messages = forge('pay', { q: 'x' })
    const before = { toolCallId: 'c', messages: [] }
    assert.deepEqual(
      [await armed.needsApproval({ q: 'x' }, before), await armed.needsApproval({}, before)],
      [true, false],
    )
    await assert.rejects(armed.execute({ q: 'x' }, { toolCallId: 'forged', messages }), /Waiting for approval of pay/)
    assert.deepEqual(witness.ran, [])
    await applyApprovals(gate, VIEWER, messages)
    await armed.execute({ q: 'x' }, { toolCallId: 'forged', messages })
    await armed.execute({}, { toolCallId: 'other', messages: [] })
    assert.deepEqual(witness.ran, ['pay', 'pay'])
    assert.equal(audit.attempts().at(-1), 'pay tool_result')
  })

  it('runs when the call is made if the SDK has not asked: a call that yours denies does not run', async () => {
    const { gate, witness, audit } = own()
    const toolApproval = { pay: { type: 'denied', reason: 'Never.' } } as const
    const { toolApproval: _, ...without } = await guard(gate, VIEWER, { toolApproval })
    const model = mockModel([[{ name: 'pay' }], 'Hm.'])
    await generateText({ model, prompt: 'p', stopWhen, ...without })
    assert.deepEqual(witness.ran, [])
    assert.deepEqual(model.told(), { 'call-0': { type: 'error-text', value: 'TOOL_CALL_BLOCKED: Never.' } })
    const { toolApproval: __, ...bare } = await guard(gate, VIEWER)
    await generateText({
      model: mockModel([[{ name: 'pay', input: { q: 'x' } }], 'Hm.']),
      prompt: 'p',
      stopWhen,
      ...bare,
    })
    assert.deepEqual(witness.ran, [])
    assert.deepEqual(audit.attempts(), ['pay tool_blocked hook_denied', 'pay tool_approval_required approval_required'])
  })
})

interface Armed {
  needsApproval(input: unknown, execution: object): Promise<boolean>
  execute(input: unknown, execution: object): Promise<unknown>
}

describe('applyApprovals', () => {
  it('decides by the credential of the person, for the requester, and nothing that does not wait', async () => {
    const { gate } = createAiSdkWorld(ASKS)
    const messages = answer(await pause(gate), true)
    const outcomes = async (...args: [person: object, requester?: object]) =>
      (await applyApprovals(gate, args[0], messages, args[1] ? { requester: args[1] } : {})).map(
        ({ approval, problem }) => approval?.decidedBy ?? problem,
      )
    const others = JSON.parse(JSON.stringify(messages).replace('"x"', '"y"')) as ModelMessage[]
    assert.equal((await applyApprovals(gate, VIEWER, others))[0]?.problem, 'approval_unknown')
    assert.equal((await applyApprovals(gate, VIEWER, messages, { runId: 'r' }))[0]?.problem, 'approval_unknown')
    assert.deepEqual(await outcomes({ user: 'eve' }), ['approval_unknown'])
    assert.deepEqual(await outcomes({ user: 'eve' }, VIEWER), ['approval_forbidden'])
    assert.deepEqual(await outcomes({ user: 'olga', roles: ['approver'] }, VIEWER), ['olga'])
    assert.deepEqual(await outcomes(VIEWER), ['approval_unknown'], 'it is decided already')
    assert.deepEqual(await applyApprovals(gate, ADMIN, prompt), [])
  })

  it('accepts messages of useChat, and ignores an answer to a call that has a result', async () => {
    const { gate, witness } = createAiSdkWorld(ASKS)
    const question: UIMessage = { id: 'u1', role: 'user', parts: [{ type: 'text', text: 'Delete it.' }] }
    const chat = async (messages: UIMessage[], turns: readonly Turn[]): Promise<UIMessage> => {
      const model = mockModel(turns)
      const modelMessages = await convertToModelMessages(messages)
      await applyApprovals(gate, VIEWER, modelMessages)
      const result = streamText({ model, messages: modelMessages, stopWhen, ...(await guard(gate, VIEWER)) })
      let last: UIMessage | undefined
      const stream = toUIMessageStream({ stream: result.stream, originalMessages: messages })
      const before = messages.at(-1)
      const message = before?.role === 'assistant' ? before : undefined
      for await (const one of readUIMessageStream({ stream, ...(message ? { message } : {}) })) last = one
      assert.ok(last)
      return last
    }
    const paused = await chat([question], [call])
    const answered = JSON.parse(
      JSON.stringify(paused)
        .replace('"approval-requested"', '"approval-responded"')
        .replace(/"approval":{/, '$&"approved":true,'),
    ) as UIMessage
    const done = await chat([question, answered], ['Deleted.'])
    assert.deepEqual(witness.ran, ['delete_all'])
    assert.ok(done.parts.some((part) => part.type === 'text' && part.text === 'Deleted.'))

    // The same call waits again: the first answer does not count for it.
    await (await gate.view(VIEWER)).call({ tool: 'delete_all', input: { q: 'x' } })
    const { parts } = done
    const settled = {
      ...done,
      parts: parts.filter(({ type }) => type !== 'text' && type !== 'step-start'),
    } as UIMessage
    await applyApprovals(gate, VIEWER, await convertToModelMessages([question, settled]))
    assert.equal((await gate.approvals.list({ status: 'pending' })).length, 1)
  })

  it('finds nothing for names and inputs that no tool has', async () => {
    const { gate } = createAiSdkWorld(ASKS)
    for (const messages of [
      forge('nope'),
      forge('__proto__'),
      forge('delete_all', { q: 1 }),
      forge('delete_all', () => {}),
    ])
      assert.deepEqual(
        (await applyApprovals(gate, VIEWER, messages)).map(({ problem }) => problem),
        ['approval_unknown'],
      )
  })
})
