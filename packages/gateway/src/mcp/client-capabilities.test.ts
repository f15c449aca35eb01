import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseClientCapabilities } from './client-capabilities.ts'

describe('parseClientCapabilities', () => {
  it('keeps what servers may need, and nothing else', () => {
    assert.deepEqual(
      parseClientCapabilities({
        elicitation: { form: { applyDefaults: true }, url: {}, more: 'x'.repeat(10_000) },
        sampling: { tools: {}, more: 1 },
        roots: { listChanged: true },
        experimental: { x: 'x'.repeat(10_000) },
        extensions: { 'io.modelcontextprotocol/tasks': { a: 1 }, big: 'x'.repeat(1000) },
      }),
      {
        elicitation: { form: {}, url: {} },
        sampling: { tools: {} },
        roots: { listChanged: true },
        extensions: { 'io.modelcontextprotocol/tasks': { a: 1 } },
      },
    )
    assert.deepEqual(parseClientCapabilities({}), {})
    assert.deepEqual(parseClientCapabilities({ elicitation: {} }), { elicitation: {} })
  })

  it('keeps at most 8 extensions', () => {
    const extensions = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`x${i}`, {}]))
    assert.equal(Object.keys(parseClientCapabilities({ extensions }).extensions ?? {}).length, 8)
  })

  it('refuses capabilities that are no objects', () => {
    for (const given of [undefined, null, [], 'x', { elicitation: 1 }, { extensions: [] }])
      assert.throws(() => parseClientCapabilities(given), /must be an object/)
  })

  it('takes a capability that is null for absent', () => {
    const given = {
      sampling: null,
      roots: { listChanged: null },
      elicitation: { form: {}, url: null },
      extensions: null,
    }
    assert.deepEqual(parseClientCapabilities(given), { roots: {}, elicitation: { form: {} } })
  })
})
