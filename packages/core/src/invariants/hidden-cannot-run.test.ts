import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { toWireName } from '../expose/names.ts'
import { openWorld, viewOptionsOf, worldArbitrary } from '../testing/worlds.ts'
import type { Tool } from '../tools/tool.ts'
import { runs } from '../testing/runs.ts'

describe('what is hidden', () => {
  it('cannot run: not by any spelling, in a batch, again, or through a narrower view', async () => {
    await fc.assert(
      fc.asyncProperty(worldArbitrary, async (world) => {
        const { gate, tools, ran } = openWorld(world)
        const view = await gate.view(world.caller, viewOptionsOf(world))
        const visible = new Set(view.ids)
        const narrow = view.narrow({ activeTools: tools.map((tool) => tool.id) })
        const spellings = tools.flatMap(spellingsOf)
        const batch = [...spellings, ...spellings].flatMap((spelling) =>
          [view, narrow].map(async (through) => {
            const { status } = await through.call({ tool: spelling, input: world.input })
            if (status !== 'refused') assert.ok(visible.has(spelling), `${JSON.stringify(spelling)} is ${status}`)
          }),
        )
        await Promise.all(batch)
        for (const id of ran.keys()) assert.ok(visible.has(id), `${id} ran and is not visible`)
      }),
      runs(150),
    )
  })

  it('is in no answer of the view: not listed, not had, not given', async () => {
    await fc.assert(
      fc.asyncProperty(worldArbitrary, async (world) => {
        const { gate, tools } = openWorld(world)
        const view = await gate.view(world.caller, viewOptionsOf(world))
        for (const { id } of tools) {
          const visible = ['allow', 'ask'].includes(view.explain(id).outcome)
          assert.equal(view.has(id), visible)
          assert.equal(view.get(id) !== undefined, visible)
          assert.equal(view.ids.includes(id), visible)
          assert.equal(
            view.tools.some((tool) => tool.id === id),
            visible,
          )
        }
        assert.equal(view.size, view.ids.length)
      }),
      runs(300),
    )
  })
})

/** The id, and everything like it that a careless look-up might take for it. */
function spellingsOf(tool: Tool): string[] {
  const { id, name } = tool
  return [
    id,
    name,
    `:${name}`,
    `*:${name}`,
    `${id} `,
    ` ${id}`,
    `${id}\0`,
    id.toUpperCase(),
    id.replace(':', '__'),
    id.replace(':', '.'),
    `${id}\u200b`,
    id.replace('e', '\u0435'),
    encodeURIComponent(id),
    toWireName(tool),
    `group:g1`,
    '*',
    '__proto__',
    'hasOwnProperty',
  ]
}
