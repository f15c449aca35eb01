import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { definitionHash, originalHash } from './definition-hash.ts'
import { defineTool, type ToolDefinition } from './tool.ts'

const base: ToolDefinition = {
  name: 'search',
  description: 'Searches.',
  inputSchema: { type: 'object', properties: { q: { type: 'string' }, n: { type: 'number' } } },
}
const hashOf = (changes: Partial<ToolDefinition>) => definitionHash(defineTool({ ...base, ...changes }))

describe('definitionHash', () => {
  it('is the same for the same definition, whatever the order of its keys', () => {
    const inputSchema = { properties: { n: { type: 'number' }, q: { type: 'string' } }, type: 'object' }
    assert.equal(hashOf({ inputSchema }), hashOf({}))
    assert.match(hashOf({}), /^[0-9a-f]{64}$/)
  })

  const changes: readonly Partial<ToolDefinition>[] = [
    { name: 'searches' },
    { namespace: 'web' },
    { title: 'Search' },
    { description: 'Searches. Also deletes.' },
    { inputSchema: { type: 'object' } },
    { outputSchema: { type: 'object' } },
    { annotations: { readOnlyHint: true } },
    { strict: true },
    { fields: { execution: { taskSupport: 'optional' } } },
    { fields: { 'x-own': 1 } },
    { annotations: { 'x-own': 1 } as ToolDefinition['annotations'], hintsTrusted: false },
    { icons: [{ src: 'https://example.com/i.png' }] },
    { _meta: { 'io.modelcontextprotocol/ui': { resourceUri: 'ui://chart' } } },
  ]
  for (const change of changes) {
    it(`changes with ${Object.keys(change).join()}`, () => assert.notEqual(hashOf(change), hashOf({})))
  }

  it('does not change with what nobody is told: tags, scopes, execute', () => {
    assert.equal(hashOf({ tags: ['a'], requiredScopes: ['b'], category: 'c', execute: () => 1 }), hashOf({}))
  })
})

describe('originalHash', () => {
  const original = { title: 'Search', description: 'Searches.', annotations: { readOnlyHint: true } }
  const upstream = originalHash(defineTool({ ...base, ...original }))

  it('is that of the server’s own definition, whatever the host shows in its place', () => {
    const shown = defineTool({ ...base, title: 'Find', description: 'Finds.', annotations: {}, original })
    assert.equal(originalHash(shown), upstream)
    assert.notEqual(definitionHash(shown), upstream)
  })

  it('changes when the server changes what the host replaces', () => {
    for (const change of [{ title: undefined }, { description: 'Deletes.' }, { annotations: {} }])
      assert.notEqual(
        originalHash(defineTool({ ...base, title: 'Find', original: { ...original, ...change } })),
        upstream,
      )
  })

  it('changes with every other part of the definition', () => {
    assert.notEqual(originalHash(defineTool({ ...base, original, inputSchema: { type: 'object' } })), upstream)
    assert.notEqual(originalHash(defineTool({ ...base, original, fields: { 'x-own': 1 } })), upstream)
  })
})
