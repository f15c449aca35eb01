import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { createGate } from '../gate/gate.ts'
import { defineTool, type ToolDefinition } from '../tools/tool.ts'

/** The tools of three real servers as they list them, and a hundred of common kinds. */
const { tools } = readJson('relevance-tools.test.json') as { tools: readonly ToolDefinition[] }
/** What people ask, and the tools that any of them expects. */
const rows = readJson('relevance.test.json') as readonly { query: string; finds: readonly string[] }[]

function readJson(name: string): unknown {
  return JSON.parse(readFileSync(new URL(name, import.meta.url), 'utf8'))
}

const view = await createGate({ tools: tools.map((tool) => defineTool(tool)) }).view({})

function placeOf({ query, finds }: (typeof rows)[number]): number {
  const place = view.search(query, { limit: 100, detail: 'names' }).findIndex(({ id }) => finds.includes(id))
  return place === -1 ? Number.POSITIVE_INFINITY : place + 1
}

describe('the relevance of a search', () => {
  it('is asked of tools that there are', () => {
    for (const { query, finds } of rows) for (const id of finds) assert.ok(view.has(id), `${query}: ${id}`)
  })

  for (const row of rows) {
    it(`finds ${row.finds.join(' or ')} for "${row.query}" among the first five`, () => {
      assert.ok(placeOf(row) <= 5, `place ${placeOf(row)}`)
    })
  }

  it('has the expected tool first in nine of ten queries: a mean reciprocal rank of 0.95', () => {
    const reciprocals = rows.map((row) => 1 / placeOf(row))
    const mean = reciprocals.reduce((sum, one) => sum + one, 0) / rows.length
    assert.ok(mean >= 0.95, `${mean}`)
    assert.ok(reciprocals.filter((one) => one === 1).length >= rows.length * 0.9)
  })

  it('finds every tool first by its own id, name and name as one word', () => {
    for (const { id, namespace, name } of view.tools) {
      assert.equal(view.search(id)[0]?.id, id)
      const same = view.tools.filter((other) => other.name === name)
      if (same.length > 1) continue
      assert.equal(view.search(name)[0]?.id, id, `${namespace}: ${name}`)
      assert.equal(view.search(name.replaceAll(/[_-]/g, ''))[0]?.id, id, `${namespace}: ${name} as one word`)
    }
  })
})
