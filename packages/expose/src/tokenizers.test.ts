import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { loadTokenizer } from './tokenizers.ts'

describe('loadTokenizer', () => {
  it('counts as GPT-4o and later do', async () => {
    const { name, exactFor, count } = await loadTokenizer()
    assert.equal(name, 'o200k_base')
    assert.deepEqual(exactFor, ['openai-chat', 'openai-responses'])
    assert.equal(count('hello world'), 2)
    assert.equal(count(''), 0)
  })

  it('takes the marks of special tokens in a text for text', async () => {
    const { count } = await loadTokenizer('cl100k_base')
    assert.ok(count('<|endoftext|>') > 1)
  })
})
