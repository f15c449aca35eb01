import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { toWireName } from '../../../expose/src/names.ts'
import { idsIn, inputOf, openWorld, viewOptionsOf, worldArbitrary } from '../../../testing/support/worlds.ts'
import { ITEM_KINDS } from '../tools/tool-id.ts'
import type { Tool } from '../tools/tool.ts'
import { runs } from '../../../testing/src/runs.ts'

describe('what is hidden', () => {
  it('cannot run: not by any spelling, in a batch, again, or through a narrower view', async () => {
    await fc.assert(
      fc.asyncProperty(worldArbitrary, async (world) => {
        const { gate, tools, ran } = openWorld(world)
        const view = await gate.view(world.caller, viewOptionsOf(world))
        const visible = new Set(idsIn(view))
        const narrow = view.narrow({ activeTools: tools.map((tool) => tool.id) })
        const spellings = tools.flatMap(spellingsOf)
        const batch = [...spellings, ...spellings].flatMap((spelling) =>
          [view, narrow].map(async (through) => {
            const item = tools.find(({ id }) => id === spelling)
            const input = item ? inputOf(world, item) : world.input
            const { status } = await through.call({ tool: spelling, input })
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
          assert.equal(idsIn(view).includes(id), visible)
          assert.equal(
            ITEM_KINDS.flatMap((kind) => view.items(kind)).some((tool) => tool.id === id),
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
    id.replace('db://', 'DB://'),
    id.replace('read', '%72ead'),
    id.replace('read', './read'),
    `${id}#`,
    `group:g1`,
    `server:${tool.namespace}`,
    '*',
    '__proto__',
    'hasOwnProperty',
  ]
}
