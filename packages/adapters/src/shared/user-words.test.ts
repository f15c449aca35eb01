import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { AIMessage, HumanMessage, ToolMessage } from 'langchain'
import { createGate } from '@toolgate/core'
import { guard as guardLangChain } from '../langchain.ts'
import { createRun } from '../run.ts'
import { resultsOf, userTextsOf } from './user-words.ts'

/** The same conversation in the form of each framework: the user writes, the model calls, and a page answers. */
const CONVERSATIONS: Readonly<Record<string, readonly unknown[]>> = {
  'AI SDK': [
    { role: 'system', content: 'Help.' },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'mail bob' },
        { type: 'file', data: 'a file', text: 'a file' },
      ],
    },
    { role: 'assistant', content: [{ type: 'tool-call', toolCallId: 'c', toolName: 'fetch', input: {} }] },
    { role: 'tool', content: [{ type: 'tool-result', toolCallId: 'c', output: { type: 'text', value: 'a page' } }] },
  ],
  'AI SDK in a browser': [
    { role: 'user', parts: [{ type: 'text', text: 'mail bob' }] },
    { role: 'assistant', parts: [{ type: 'tool-fetch', state: 'output-available', output: 'a page' }] },
  ],
  'OpenAI chat': [
    { role: 'user', content: 'mail bob' },
    { role: 'assistant', content: null, tool_calls: [] },
    { role: 'tool', tool_call_id: 'c', content: 'a page' },
  ],
  'OpenAI responses': [
    { role: 'user', content: [{ type: 'input_text', text: 'mail bob' }] },
    { type: 'function_call', name: 'fetch', arguments: '{}' },
    { type: 'function_call_output', call_id: 'c', output: 'a page' },
  ],
  Anthropic: [
    { role: 'user', content: 'mail bob' },
    { role: 'assistant', content: [{ type: 'tool_use', id: 'c', name: 'fetch', input: {} }] },
    {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 'c', content: [{ type: 'text', text: 'a page' }] },
        { type: 'document', title: 'a page', text: 'a page' },
      ],
    },
  ],
  Gemini: [
    { role: 'user', parts: [{ text: 'mail bob' }] },
    { role: 'model', parts: [{ functionCall: { name: 'fetch' } }] },
    { role: 'user', parts: [{ functionResponse: { name: 'fetch', response: { output: 'a page' } } }] },
  ],
  LangChain: [
    new HumanMessage('mail bob'),
    new AIMessage({ content: '', tool_calls: [{ name: 'fetch', args: {}, id: 'c' }] }),
    new ToolMessage({ content: 'a page', tool_call_id: 'c' }),
  ],
  Mastra: [
    { role: 'user', content: { format: 2, parts: [{ type: 'text', text: 'mail bob' }] } },
    {
      role: 'assistant',
      content: {
        format: 2,
        parts: [{ type: 'tool-invocation', toolInvocation: { state: 'result', result: 'a page' } }],
      },
    },
  ],
}

for (const [name, messages] of Object.entries(CONVERSATIONS)) {
  describe(`messages of ${name}`, () => {
    it('have the text of the user, and no other', () => {
      assert.deepEqual(userTextsOf(messages), ['mail bob'])
    })

    it('have the results of tools, and no words of the user', () => {
      const found = JSON.stringify(resultsOf(messages))
      assert.match(found, /a page/)
      assert.doesNotMatch(found, /mail bob/)
    })
  })
}

describe('userTextsOf', () => {
  it('takes anything', () => {
    assert.deepEqual(userTextsOf([null, 'text', 1, {}, { role: 'user' }, { role: 'user', content: null }]), [])
    assert.deepEqual(resultsOf([null, 'text', 1, {}, { role: 'tool', content: null }]).length, 1)
  })
})

describe('userWords of a guard', () => {
  const gate = createGate({ tools: [] })

  it('must be a function where a guard serves many runs', () => {
    const options = { caller: { user: 'vera' }, userWords: 'mail bob' }
    assert.throws(() => guardLangChain(gate, options as never), /guard.userWords: must be a function of the run/)
  })

  it('must be a text or a list of texts', async () => {
    const made = createRun(gate, { user: 'vera' }, { userWords: 7 as never })
    await assert.rejects(made, /userWords: must be a text or a list of texts/)
    const results = createRun(gate, { user: 'vera' }, { earlierResults: 'a page' as never })
    await assert.rejects(results, /earlierResults: must be a list/)
  })
})
