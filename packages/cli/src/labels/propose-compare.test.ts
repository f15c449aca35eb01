import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { proposeCompare } from './propose-compare.ts'

const tool = (name: string, required: readonly string[], more: readonly string[] = [], readOnlyHint = false) => ({
  name,
  inputSchema: {
    type: 'object',
    properties: Object.fromEntries([...required, ...more].map((field) => [field, { type: 'string' }])),
    required,
  },
  annotations: { readOnlyHint },
})
const write = tool('write_file', ['path', 'content'])
const read = tool('read_text_file', ['path'], ['head'], true)

describe('proposeCompare', () => {
  it('proposes the reader of the same thing, by what both take', () => {
    const expected = { text: 'input.content', with: 'read_text_file', input: { path: 'input.path' } }
    assert.deepEqual(proposeCompare(write, [tool('read_file', ['path'], [], true), read, write]), expected)
    const update = tool('update_page', ['space', 'id', 'body'])
    assert.deepEqual(proposeCompare(update, [tool('get_page', ['space', 'id'], [], true)])?.input, {
      space: 'input.space',
      id: 'input.id',
    })
  })

  const none: readonly (readonly [string, Parameters<typeof proposeCompare>])[] = [
    ['without a tool of that name', [write, [tool('read_mail', ['path'], [], true)]]],
    ['with a reader that may write', [write, [tool('read_file', ['path'])]]],
    ['with a reader that needs more', [write, [tool('read_file', ['path', 'root'], [], true)]]],
    ['with a reader that needs nothing: it reads something else', [write, [tool('read_file', [], [], true)]]],
    ['with two texts', [tool('write_file', ['path', 'content', 'body']), [read]]],
    ['for a tool that does not write', [tool('list_file', ['path', 'content']), [read]]],
    ['for a schema that is none', [{ name: 'write_file', inputSchema: 'no', annotations: null }, [read]]],
  ]
  for (const [name, asked] of none) it(`proposes none ${name}`, () => assert.equal(proposeCompare(...asked), undefined))
})
