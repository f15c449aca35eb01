import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { defineTool } from '../tools/tool.ts'
import { createGate } from './gate.ts'

describe('a view', () => {
  const tools = Array.from({ length: 200 }, (_, i) => defineTool({ namespace: 'a', name: `t${i}`, execute: () => 1 }))
  const many = Array.from({ length: 1500 }, (_, i) => `value-${i}`)

  it('shares the steps of its conditions over tools, so that large attributes cannot stall the process', async () => {
    const when = "caller.attributes.a.all(x, x in caller.attributes.b && tool.name != '')"
    const gate = createGate({ tools, policy: { deny: [{ match: '*:*', unless: when }] } })
    const few = await gate.view({ user: 'vera', attributes: { a: ['value-1'], b: many } })
    assert.equal(few.ids.length, 200)
    // One tool takes about a million steps, 200 tools would take a second.
    const all = await gate.view({ user: 'ada', attributes: { a: many, b: many } })
    assert.equal(all.ids.length < 10, true)
    assert.match(all.explain('a:t150').reasons[0]?.code ?? '', /policy_/)
  })
})
