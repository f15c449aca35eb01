import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sizeOf } from '@toolgate/values'
import { createGate } from '../gate/gate.ts'
import type { JsonSchema } from '../tools/tool.ts'
import { defineTool } from '../tools/tool.ts'

const MAX = 5000
const ROW = { id: 1, name: 'a row of a table' }
const rows = (count: number) => Array.from({ length: count }, (_, id) => ({ ...ROW, id }))
const ROWS: JsonSchema = {
  type: 'object',
  properties: {
    rows: {
      type: 'array',
      items: {
        type: 'object',
        required: ['id', 'name'],
        additionalProperties: false,
        properties: { id: {}, name: {} },
      },
    },
    total: { type: 'integer' },
  },
  required: ['rows'],
  additionalProperties: false,
}

interface Result {
  readonly content: { readonly type: string; readonly text: string }[]
  readonly structuredContent?: { readonly rows: unknown[]; readonly total?: number }
  readonly isError?: boolean
}

async function call(output: unknown, outputSchema: JsonSchema | undefined, maxOutputChars = MAX) {
  const gate = createGate({
    tools: [defineTool({ name: 'list', outputSchema, execute: () => output })],
    policy: { allow: ['*'] },
    maxOutputChars,
  })
  const outcome = await (await gate.view({})).call({ tool: 'list' })
  assert.ok(outcome.status === 'done')
  assert.ok(sizeOf(outcome.output, Infinity) <= maxOutputChars, 'it is longer than it may be')
  return { outcome, result: outcome.output as Result }
}

const text = ({ content }: Result) => content.map((block) => block.text).join('\n')

describe('a structured result that is too long', () => {
  it('keeps whole items that fit its schema, and says so in a text block', async () => {
    const structuredContent = { rows: rows(3000), total: 3000 }
    const content = [{ type: 'text', text: JSON.stringify(structuredContent) }]
    const { result, outcome } = await call({ content, structuredContent }, ROWS)
    const kept = result.structuredContent?.rows ?? []
    assert.ok(kept.length > 20, String(kept.length))
    assert.deepEqual(kept, rows(kept.length))
    assert.equal(result.structuredContent?.total, 3000)
    assert.match(text(result), new RegExp(`\\[cut: "rows" has the first ${kept.length} of 3000 items\\]`))
    assert.deepEqual([result.isError, outcome.isError, outcome.isCut], [undefined, false, true])
  })

  it('keeps a structured content that fits beside a text that does not', async () => {
    const structuredContent = { rows: rows(3) }
    const { result } = await call({ content: [{ type: 'text', text: 'x'.repeat(2 * MAX) }], structuredContent }, ROWS)
    assert.deepEqual(result.structuredContent, structuredContent)
    assert.match(text(result), /x… \[cut: 10000 characters\]/)
  })

  it('has no structured content if fewer items do not fit the schema', async () => {
    for (const [schema, value] of [
      [{ ...ROWS, properties: { rows: { type: 'array', minItems: 3000 } } }, { rows: rows(3000) }],
      [{ type: 'object', properties: { page: { type: 'string' } } }, { page: 'y'.repeat(2 * MAX) }],
      [{ type: 'object' }, { points: [['z'.repeat(2 * MAX)]], name: 'y'.repeat(2 * MAX) }],
    ] as const) {
      const content = [{ type: 'text', text: `It has ${'many '.repeat(MAX)}` }]
      const { result, outcome } = await call({ content, structuredContent: value }, schema)
      assert.ok(!('structuredContent' in result))
      assert.match(text(result), /^It has many[^]*\[cut: the tool ran\. Its structured content is left out/)
      // Clients throw for a result that has neither a structure nor an error. The call itself has not failed.
      assert.deepEqual([result.isError, outcome.isError], [true, false])
    }
  })

  it('shortens the largest list first, and no list within another', async () => {
    const structuredContent = { few: [[1, 2, 3]], many: Array.from({ length: MAX }, () => [1, 2, 3]) }
    const { result } = await call({ content: [], structuredContent }, { type: 'object' })
    const { few, many } = result.structuredContent as unknown as Record<'few' | 'many', unknown[]>
    assert.deepEqual(few, [[1, 2, 3]])
    assert.ok(many.length > 100 && many.every((one) => JSON.stringify(one) === '[1,2,3]'))
  })

  it('may be a list itself', async () => {
    const { result } = await call({ content: [], structuredContent: rows(1000) }, { type: 'array', items: {} })
    assert.ok(Array.isArray(result.structuredContent) && result.structuredContent.length > 20)
    assert.match(text(result), /the structured content has the first \d+ of 1000 items/)
  })

  it('keeps digits beyond 2^53', async () => {
    const structuredContent = { rows: Array.from({ length: MAX }, () => 1915883588174806058n) }
    const { result } = await call({ content: [], structuredContent }, { type: 'object' })
    assert.ok(result.structuredContent?.rows.every((one) => one === 1915883588174806058n))
  })

  it('has a note alone where nothing else has room', async () => {
    const _meta = { x: 'y'.repeat(2 * MAX) }
    const { result } = await call({ content: [], structuredContent: { rows: rows(9) }, _meta }, ROWS)
    assert.deepEqual([Object.keys(result), result.isError], [['content', 'isError'], true])
    assert.match(text(result), /left out, as a result has at most 5000 characters/)
  })

  it('is cut as before without an output schema, or without structured content', async () => {
    const structuredContent = { rows: rows(3000) }
    const { result } = await call({ content: [], structuredContent }, undefined)
    assert.match(JSON.stringify(result.structuredContent?.rows.at(-1)), /cut: \d+ of 3000 items/)
    const plain = await call({ rows: rows(3000) }, ROWS)
    assert.match(JSON.stringify((plain.outcome.output as { rows: unknown[] }).rows.at(-1)), /cut: \d+ of 3000 items/)
    assert.equal(plain.outcome.isCut, true)
  })

  it('passes as the same object if it fits', async () => {
    const output = { content: [], structuredContent: { rows: rows(2) } }
    const { outcome } = await call(output, ROWS)
    assert.equal(outcome.output, output)
    assert.equal(outcome.isCut, false)
  })
})
