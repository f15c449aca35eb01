import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { referenceDecide } from '../testing/reference.ts'
import { openWorld, runs, viewOptionsOf, wordOf, worldArbitrary } from '../testing/worlds.ts'

describe('the gate beside a naive evaluator', () => {
  it('lists, explains and calls as the plain reading of the design says, whatever the world', async () => {
    await fc.assert(
      fc.asyncProperty(worldArbitrary, async (world) => {
        const { gate, tools, ran } = openWorld(world)
        const view = await gate.view(world.caller, viewOptionsOf(world))
        const visible = tools.filter((tool) => ['allow', 'ask'].includes(referenceDecide(world, tool, false)))
        assert.deepEqual(new Set(view.ids), new Set(visible.map((tool) => tool.id)))
        for (const tool of tools) {
          const unasked = referenceDecide(world, tool, false)
          assert.equal(view.explain(tool.id).outcome, unasked, `explain ${tool.id}`)
          // What may not go on before the input is looked at is refused for that.
          const called = ['allow', 'ask'].includes(unasked) ? referenceDecide(world, tool, true) : unasked
          const outcome = await view.call({ tool: tool.id, input: world.input })
          assert.equal(wordOf(outcome), called, `call ${tool.id}`)
          assert.equal(ran.get(tool.id) ?? 0, called === 'allow' ? 1 : 0)
        }
      }),
      runs(2000),
    )
  })
})
