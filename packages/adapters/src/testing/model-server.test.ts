import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { generateText, isStepCount, jsonSchema, type LanguageModel, streamText, tool } from 'ai'
import { type ModelServer, startModelServer } from './model-server.ts'

describe('startModelServer', () => {
  const open = async (t: TestContext, ...given: Parameters<typeof startModelServer>) => {
    const server = await startModelServer(...given)
    t.after(() => server.close())
    return { server, model: modelOf(server) }
  }
  const tools = { search: tool({ inputSchema: jsonSchema<object>({ type: 'object' }), execute: () => 'found' }) }

  it('answers in JSON with calls, texts and usage, and keeps what it was asked', async (t) => {
    const { server, model } = await open(t, [{ calls: [{ name: 'search', input: { q: 'ä' } }] }, { text: 'Found it.' }])
    const result = await generateText({ model, prompt: 'Search.', tools, stopWhen: isStepCount(5) })
    assert.equal(result.text, 'Found it.')
    assert.deepEqual(result.steps[0]?.toolCalls[0]?.input, { q: 'ä' })
    assert.equal(result.usage.totalTokens, 30)
    assert.deepEqual(
      server.requests.map(({ wire, stream, tools: names }) => [wire, stream, names]),
      [
        ['openai-chat', false, ['search']],
        ['openai-chat', false, ['search']],
      ],
    )
  })

  it('streams the same', async (t) => {
    const { server, model } = await open(t, [
      { text: 'I look.', calls: [{ name: 'search', input: { q: 1 } }] },
      { text: 'Found it.' },
    ])
    const result = streamText({ model, prompt: 'Search.', tools, stopWhen: isStepCount(5) })
    const parts: string[] = []
    for await (const part of result.textStream) parts.push(part)
    assert.equal(parts.join(''), 'I look.Found it.')
    assert.deepEqual((await result.steps)[0]?.toolCalls[0]?.input, { q: 1 })
    assert.deepEqual(
      server.requests.map(({ stream }) => stream),
      [true, true],
    )
  })

  it('answers with a status, breaks a stream, and knows the end of its script', async (t) => {
    const { model } = await open(t, [
      { status: 400, text: 'no such model' },
      { text: 'one two three', breaksAfter: 2 },
    ])
    await assert.rejects(generateText({ model, prompt: 'p', maxRetries: 0 }), /no such model/)
    const result = streamText({ model, prompt: 'p', maxRetries: 0, onError: () => {} })
    const kinds: string[] = []
    for await (const part of result.fullStream) kinds.push(part.type)
    assert.ok(kinds.includes('error'), kinds.join(' '))
    await assert.rejects(generateText({ model, prompt: 'p', maxRetries: 0 }), /the script has ended/)
  })

  it('is asked by a function too, and sends arguments as they are written', async (t) => {
    const { model } = await open(t, ({ tools: names }) => ({ calls: [{ name: names[0] ?? '', input: '{"q":' }] }))
    const result = await generateText({ model, prompt: 'p', tools })
    assert.equal(result.toolCalls[0]?.invalid, true)
  })
})

function modelOf({ url }: ModelServer): LanguageModel {
  return createOpenAICompatible({ name: 'test', baseURL: `${url}/v1` }).chatModel('scripted')
}
