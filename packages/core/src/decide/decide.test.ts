import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate } from '../gate/gate.ts'
import { memoryAvailability } from '../memory/availability.ts'
import { defineTool } from '../tools/tool.ts'

describe('view.explain', () => {
  const gate = createGate({
    tools: [
      defineTool({ name: 'a', execute: () => 1 }),
      defineTool({ name: 'b', requiredScopes: ['s'], execute: () => 1 }),
    ],
    groups: { lab: { tools: ['b'], visibility: 'conditional' } },
    availability: memoryAvailability({ lab: { available: false, reason: 'nothing listens' } }),
    policy: { ask: ['b'] },
  })

  it('returns the answer of every layer, the deciding one first', async () => {
    const view = await gate.view({ user: 'vera' }, { activeTools: ['a'] })
    assert.deepEqual(
      view.explain('b').answers.map(({ layer, outcome }) => `${layer}: ${outcome}`),
      [
        'scopes: deny',
        'step: wait',
        'availability: wait',
        'policy: ask',
        'catalog: allow',
        'app: allow',
        'visibility: allow',
        'locks: allow',
        'connections: allow',
        'preferences: allow',
        'pins: allow',
        'halts: allow',
      ],
    )
  })

  it('names the catalog as the deciding layer for an unknown tool', async () => {
    const view = await gate.view({ user: 'vera' })
    assert.deepEqual(view.explain('none').answers[0], { layer: 'catalog', outcome: 'deny' })
    assert.ok(
      view
        .explain('none')
        .answers.slice(1)
        .every(({ outcome }) => outcome === 'allow'),
    )
  })
})
