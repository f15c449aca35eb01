import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { generateText, NoSuchToolError, streamText } from 'ai'
import { guard, type GuardOptions } from '../ai-sdk.ts'
import { createAiSdkWorld, stopWhen } from '../testing/ai-sdk-world.ts'
import { mockModel, type ModelCall } from '../testing/mock-model.ts'
import { VIEWER } from '../testing/world.ts'

async function runOne(call: ModelCall, options: GuardOptions = {}) {
  const world = createAiSdkWorld()
  const model = mockModel([[call], 'Done.'])
  const guarded = await guard(world.gate, VIEWER, options)
  const result = await generateText({ model, prompt: 'p', stopWhen, ...guarded })
  return { ...world, model, result, told: model.told()['call-0'] as { type: string; value: string } }
}

const fix: GuardOptions['repairToolCall'] = async ({ toolCall }) => ({ ...toolCall, toolName: 'search', input: '{}' })

describe('repairToolCall of guard', () => {
  it('has the gate refuse an input that is no JSON, or none of the tool', async () => {
    const broken = await runOne({ name: 'search', text: '{"q": ' })
    assert.equal(broken.told.value, 'TOOL_CALL_BLOCKED: invalid input at "": is not JSON')
    assert.deepEqual(broken.audit.attempts(), ['search tool_blocked input_invalid'])
    const wrong = await runOne({ name: 'search', input: { q: 1 } })
    assert.match(wrong.told.value, /^TOOL_CALL_BLOCKED: invalid input at "\/q": /)
    assert.deepEqual(wrong.audit.attempts(), ['search tool_blocked input_invalid'])
    assert.deepEqual([...broken.witness.ran, ...wrong.witness.ran], [])
  })

  it('says nothing of the input of a hidden tool', async () => {
    for (const call of [
      { name: 'delete_all', text: '{' },
      { name: 'delete_all', input: { q: 1 } },
    ]) {
      const { told, audit } = await runOne(call)
      assert.equal(told.value, 'Tool "delete_all" is not available. Available tools: alpha, search.')
      assert.deepEqual(audit.attempts(), ['delete_all tool_blocked policy_denied'])
    }
  })

  it('keeps the identity of the SDK’s error', async () => {
    const { result } = await runOne({ name: 'delete_all' })
    const [call] = result.steps[0]?.toolCalls ?? []
    assert.ok(call?.dynamic && call.invalid)
    assert.ok(NoSuchToolError.isInstance(call.error))
    assert.match(String(call.error), /^Tool "delete_all" is not available/)
  })

  it('asks yours first, and a repaired call goes through the gate like any other', async () => {
    const { audit, witness } = await runOne({ name: 'saerch' }, { repairToolCall: fix })
    assert.deepEqual(witness.ran, ['search'])
    assert.deepEqual(audit.attempts(), ['search tool_call', 'search tool_result'])
  })

  it('refuses calls that yours turns into a hidden tool or nonsense, or fails to repair', async () => {
    const warnings: string[] = []
    const ways: NonNullable<GuardOptions['repairToolCall']>[] = [
      async ({ toolCall }) => ({ ...toolCall, toolName: 'delete_all', input: '{}' }),
      async ({ toolCall }) => ({ ...toolCall, toolName: 'search', input: '{"q": 1}' }),
      async ({ toolCall }) => ({ ...toolCall, toolName: 'search', input: '{"q": ' }),
      async () => null,
      () => Promise.reject(new Error('out of order')),
    ]
    for (const repairToolCall of ways) {
      const { told, audit, witness } = await runOne(
        { name: 'saerch' },
        { repairToolCall, onWarning: (text) => warnings.push(text) },
      )
      assert.equal(told.value, 'Tool "saerch" is not available. Available tools: search, alpha.')
      assert.deepEqual(audit.attempts(), ['saerch tool_blocked tool_not_found'])
      assert.deepEqual(witness.ran, [])
    }
    assert.deepEqual(warnings, ['repairToolCall failed: out of order'])
  })

  it('does the same for a stream', async () => {
    const { gate } = createAiSdkWorld()
    const model = mockModel([[{ name: 'delete_all' }], 'Done.'])
    const { fullStream } = streamText({ model, prompt: 'p', stopWhen, ...(await guard(gate, VIEWER)) })
    const errors: unknown[] = []
    for await (const part of fullStream) if (part.type === 'tool-error') errors.push(part.error)
    assert.deepEqual(errors, ['Tool "delete_all" is not available. Available tools: alpha, search.'])
  })
})
