import { redactor } from '@toolgate/values/redact'
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate, defineTool, type Gate } from '@toolgate/core'
import { heartOf, nameFor } from '../../testing/heart.ts'
import { taggedJson } from '../http/request.ts'
import { ToolRows } from './tool-rows.ts'
import type { ToolColumns, ToolRow } from '../../model/rows.ts'
import { toRows } from '../../../../console/src/tool-columns.ts'

const SECRET = 'glpat-ABCDEFGHIJKLMNOPQRST'
const tools = Array.from({ length: 900 }, (_, i) =>
  defineTool({
    namespace: `server${i % 3}`,
    name: `tool_${i}`,
    description: i % 100 === 0 ? `Uses ${SECRET}` : `Does the ${i}th thing.`,
    tags: i % 2 ? ['odd'] : [],
    execute: () => 1,
  }),
)
const caller = { user: 'vera', roles: ['viewer'] }

function open(): { gate: Gate; rows: ToolRows } {
  const gate = createGate({ tools, policy: { deny: ['tag:odd'], ask: ['server2:*'] } })
  return { gate, rows: new ToolRows(heartOf({ gate })) }
}

describe('the rows of a catalog', () => {
  it('are those of each tool explained alone, also when they are kept', async () => {
    const { gate, rows } = open()
    const catalog = (): typeof tools => gate.catalog.snapshot().tools as typeof tools
    const view = await gate.view(caller)
    const expected = catalog().map(({ id, kind, description, tags }): ToolRow => {
      const { outcome, reasons } = view.explain(id)
      const shown = redactor.redactText(description)
      return {
        id,
        kind,
        wireName: id.replace(':', '__'),
        description: shown,
        tags,
        outcome,
        visible: view.has(id),
        reasons,
      }
    })
    const first = await rows.decide({ caller, person: {} }, catalog)
    const again = await rows.decide({ caller, person: {} }, catalog)
    assert.equal(again.rows, first.rows)
    const text = await rows.write(again, { kind: 'tool', hashOf: () => undefined })
    assert.deepEqual(JSON.parse(text), JSON.parse(JSON.stringify(expected)))
    assert.ok(!text.includes(SECRET))
    const columns = await rows.writeColumns(again, { kind: 'tool', hashOf: () => undefined })
    assert.ok(!columns.includes(SECRET))
    assert.ok(columns.length < text.length * 0.6)
    assert.deepEqual(toRows(JSON.parse(columns) as ToolColumns, 'tool'), JSON.parse(text))
  })

  it('have each field in their columns', async () => {
    const named = defineTool({
      namespace: 'a',
      name: 'x',
      title: 'The X',
      description: '',
      tags: ['t'],
      execute: () => 1,
    })
    const plain = defineTool({ namespace: 'a', name: 'y', description: 'Y', execute: () => 1 })
    const gate = createGate({ tools: [named, plain] })
    const rows = new ToolRows(heartOf({ gate, catalog: { lists: nameFor((id) => `short-${id.at(-1)}`) } }))
    const decided = await rows.decide({ caller, person: {} }, () => gate.catalog.snapshot().tools)
    const options = { kind: 'tool', hashOf: ({ name }: { name: string }) => (name === 'y' ? 'h1' : undefined) } as const
    const written = JSON.parse(await rows.write(decided, options)) as unknown
    assert.deepEqual(toRows(JSON.parse(await rows.writeColumns(decided, options)) as ToolColumns, 'tool'), written)
    assert.match(JSON.stringify(written), /The X.*short-x.*short-y.*h1/)
    const none = JSON.parse(await rows.writeColumns(decided, { ...options, kind: 'prompt' })) as ToolColumns
    assert.deepEqual(toRows(none, 'prompt'), [])
  })

  it('are all by the same rules where these change meanwhile', async () => {
    const { gate, rows } = open()
    const deciding = rows.decide({ caller, person: {} }, () => gate.catalog.snapshot().tools)
    await new Promise(setImmediate)
    await gate.halt({ all: true, reason: 'a drill', by: 'owner' })
    const { rows: decided } = await deciding
    assert.deepEqual(new Set(decided.map(({ outcome }) => outcome)), new Set(['deny', 'wait']))
  })

  it('are not sent again to a client that has them', () => {
    const ask = (headers: Record<string, string>) => taggedJson(new Request('http://localhost/', { headers }), '[1]')
    const etag = ask({}).headers.get('etag') ?? ''
    assert.equal(ask({ 'if-none-match': etag }).status, 304)
    assert.equal(ask({ 'if-none-match': '"other"' }).status, 200)
  })
})
