import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Caller, createGate } from '@toolgate/core'
import { generateText, isStepCount, streamText, tool, ToolLoopAgent } from 'ai'
import { z } from 'zod'
import { callerSchema, fromAiSdk, guard } from '../ai-sdk.ts'
import { mockModel } from '../testing/mock-model.ts'
import { ADMIN, createTestAudit, createWitness, VIEWER } from '../testing/world.ts'

const NOT_AVAILABLE = (name: string) => `Tool "${name}" is not available. Available tools: alpha, search.`

function createWorld() {
  const witness = createWitness()
  const audit = createTestAudit()
  const inputSchema = z.object({ q: z.string().optional() })
  const tools = {
    search: tool({ description: 'Searches.', inputSchema, execute: witness.body('search') }),
    delete_all: tool({ description: 'Deletes.', inputSchema, execute: witness.body('delete_all') }),
    alpha: tool({ inputSchema, execute: witness.body('alpha') }),
  }
  const policy = { deny: [{ match: 'delete_all', unless: "'admin' in caller.roles" }] } as const
  const gate = createGate({ tools: fromAiSdk(tools), policy, audit })
  return { gate, tools, witness, audit }
}

const stopWhen = isStepCount(5)

describe('guard of the AI SDK', () => {
  it('sends the tools that the caller sees, in the order of their ids, and runs them', async () => {
    const { gate, witness, audit } = createWorld()
    const model = mockModel([[{ name: 'delete_all', input: { q: 'x' } }], 'Done.'])
    const result = await generateText({ model, prompt: 'p', stopWhen, ...(await guard(gate, ADMIN)) })
    assert.equal(result.text, 'Done.')
    assert.deepEqual(model.sent(), [
      ['alpha', 'delete_all', 'search'],
      ['alpha', 'delete_all', 'search'],
    ])
    assert.deepEqual(witness.ran, ['delete_all'])
    assert.deepEqual(model.told(), { 'call-0': { type: 'text', value: 'delete_all done' } })
    assert.deepEqual(audit.attempts(), ['delete_all tool_call', 'delete_all tool_result'])
  })

  it('neither sends nor runs a hidden tool, gives the model the gate’s text, and records the call', async () => {
    const { gate, witness, audit } = createWorld()
    const model = mockModel([[{ name: 'delete_all' }], 'Done.'])
    await generateText({ model, prompt: 'p', stopWhen, ...(await guard(gate, VIEWER)) })
    assert.deepEqual(model.sent(), [
      ['alpha', 'search'],
      ['alpha', 'search'],
    ])
    assert.deepEqual(witness.ran, [])
    assert.deepEqual(model.told(), { 'call-0': { type: 'error-text', value: NOT_AVAILABLE('delete_all') } })
    assert.deepEqual(audit.attempts(), ['delete_all tool_blocked policy_denied'])
  })

  it('does the same in a stream', async () => {
    const { gate, witness, audit } = createWorld()
    const model = mockModel([[{ name: 'delete_all' }, { name: 'search' }], 'Done.'])
    const result = streamText({ model, prompt: 'p', stopWhen, ...(await guard(gate, VIEWER)) })
    await result.consumeStream()
    assert.equal(await result.text, 'Done.')
    assert.deepEqual(witness.ran, ['search'])
    assert.deepEqual(model.told()['call-0'], { type: 'error-text', value: NOT_AVAILABLE('delete_all') })
    assert.deepEqual(audit.attempts().toSorted(), [
      'delete_all tool_blocked policy_denied',
      'search tool_call',
      'search tool_result',
    ])
  })

  for (const name of ['constructor', '__proto__', 'toString', 'Delete_all', 'nope'])
    it(`answers "${name}", which is no tool, as it answers a hidden one`, async () => {
      const { gate, witness, audit } = createWorld()
      const model = mockModel([[{ name }], 'Done.'])
      await generateText({ model, prompt: 'p', stopWhen, ...(await guard(gate, VIEWER)) })
      assert.deepEqual(witness.ran, [])
      const asked = await (await gate.view(VIEWER)).call({ tool: undefined, calledAs: name })
      assert.match(asked.text, /^Tool "\w+" is not available\. Available tools: /)
      assert.deepEqual(model.told(), { 'call-0': { type: 'error-text', value: asked.text } })
      assert.deepEqual(audit.attempts().slice(0, 1), [`${name} tool_blocked tool_not_found`])
    })
})

describe('callerSchema', () => {
  const createShared = () => {
    const { gate, tools, witness } = createWorld()
    const model = mockModel([[{ name: 'search' }], 'Done.'])
    const agent = new ToolLoopAgent({
      model,
      tools,
      callOptionsSchema: callerSchema,
      prepareCall: async ({ options, ...settings }) => ({ ...settings, ...(await guard(gate, options)) }),
    })
    return { agent, model, witness }
  }

  it('takes the caller of a shared agent at each call', async () => {
    const { agent, witness } = createShared()
    assert.equal((await agent.generate({ prompt: 'p', options: VIEWER })).text, 'Done.')
    assert.deepEqual(witness.ran, ['search'])
  })

  it('says that a plain object is no caller, and sends nothing', async () => {
    for (const options of [{ user: 'vera' }, { ...VIEWER }, structuredClone(VIEWER), null, 'vera']) {
      const { agent, model } = createShared()
      await assert.rejects(async () => agent.generate({ prompt: 'p', options: options as Caller }), /defineCaller made/)
      assert.equal(model.requests.length, 0)
    }
    const { agent, model } = createShared()
    await assert.rejects(async () => agent.generate({ prompt: 'p' } as never), /guard\.caller: is missing/)
    assert.equal(model.requests.length, 0)
  })
})
