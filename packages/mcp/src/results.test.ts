import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate, defineTool } from '@toolgate/core'
import { toResult } from './results.ts'

const outputSchema = { type: 'object', properties: { rows: { type: 'array' } } }

async function resultOf(output: unknown, withSchema: boolean) {
  const tools = [defineTool({ name: 'list', execute: () => output, ...(withSchema && { outputSchema }) })]
  const gate = createGate({ tools, policy: { allow: ['*'] }, maxOutputChars: 500 })
  const outcome = await (await gate.view({})).call({ tool: 'list' })
  return toResult(outcome, { name: 'list', outputSchema: withSchema ? outputSchema : undefined })
}

describe('toResult', () => {
  const rows = Array.from({ length: 500 }, (_, id) => ({ id }))

  it('has no structured content for an output that was cut, if the tool has an output schema', async () => {
    const { content = [], structuredContent, isError } = await resultOf({ rows }, true)
    assert.deepEqual([structuredContent, isError], [undefined, true])
    assert.match(JSON.stringify(content), /cut: \d+ of 500 items[^]*Its structured content is left out/)
  })

  it('keeps the structure of any other output', async () => {
    const whole = { rows: rows.slice(0, 3) }
    assert.deepEqual((await resultOf(whole, true)).structuredContent, whole)
    const cut = await resultOf({ rows }, false)
    assert.match(JSON.stringify(cut.structuredContent), /cut: \d+ of 500 items/)
    assert.equal(cut.isError, undefined)
  })
})
