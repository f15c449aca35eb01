import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { definitionHash } from './definition-hash.ts'
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
