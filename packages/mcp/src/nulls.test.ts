import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { withoutNullEntries, withoutNulls } from './nulls.ts'

describe('withoutNulls', () => {
  const mended: readonly (readonly [shows: string, from: object, to: object])[] = [
    ['members of the message', { a: null, b: 1 }, { b: 1 }],
    [
      'annotations and icons',
      { annotations: { title: null }, icons: [{ src: 's', theme: null }] },
      { annotations: {}, icons: [{ src: 's' }] },
    ],
    [
      'content blocks',
      { content: [{ type: 'text', text: 'x', _meta: null }] },
      { content: [{ type: 'text', text: 'x' }] },
    ],
    [
      'resources in content blocks',
      { content: [{ resource: { uri: 'u', mimeType: null } }] },
      { content: [{ resource: { uri: 'u' } }] },
    ],
    [
      'messages',
      { messages: [{ content: { text: 'x', annotations: null } }] },
      { messages: [{ content: { text: 'x' } }] },
    ],
    ['keywords of schemas', { inputSchema: { properties: null, title: null } }, { inputSchema: {} }],
    [
      'keywords of inner schemas',
      { requestedSchema: { properties: { a: { description: null } } } },
      { requestedSchema: { properties: { a: {} } } },
    ],
    [
      'keywords of combined schemas',
      { outputSchema: { anyOf: [{ items: { format: null } }], $defs: { a: { required: null } } } },
      { outputSchema: { anyOf: [{ items: {} }], $defs: { a: {} } } },
    ],
  ]
  for (const [shows, from, to] of mended)
    it(`leaves out ${shows}`, () => assert.deepEqual(withoutNulls(from as Record<string, unknown>), to))

  const kept: readonly (readonly [shows: string, message: object])[] = [
    ['structured content', { structuredContent: { a: null } }],
    ['_meta', { _meta: { a: null } }],
    ['members that MCP does not define', { other: { a: null } }],
    ['the data of a log message', { level: 'info', data: null }],
    [
      'data in a schema',
      { inputSchema: { default: null, const: null, enum: [null], properties: { a: { default: null } } } },
    ],
    ['a property that is named as a keyword', { inputSchema: { properties: { title: { type: 'null' } } } }],
    ['items of lists', { content: [null] }],
  ]
  for (const [shows, message] of kept)
    it(`keeps ${shows}, and returns the same object`, () =>
      assert.equal(withoutNulls(message as Record<string, unknown>), message))

  it('ends for parts within each other', () => {
    let message: Record<string, unknown> = { a: null }
    for (let i = 0; i < 10_000; i++) message = { content: message }
    assert.equal(withoutNulls(message), message)
  })
})

describe('withoutNullEntries', () => {
  it('leaves out members of the object itself, except those that are kept', () => {
    assert.deepEqual(withoutNullEntries({ a: null, b: null, c: { d: null } }, ['b']), { b: null, c: { d: null } })
  })
})
