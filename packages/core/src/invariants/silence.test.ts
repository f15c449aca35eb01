import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import {
  idsIn,
  openWorld,
  type Opened,
  viewOptionsOf,
  type World,
  worldArbitrary,
} from '../../../testing/support/worlds.ts'
import { runs } from '../../../testing/src/runs.ts'

describe('a denied tool', () => {
  it('is answered for, byte by byte, as one that does not exist, unless every denial has a message', async () => {
    await fc.assert(
      fc.asyncProperty(worldArbitrary, async (world) => {
        const full = openWorld(world)
        const view = await full.gate.view(world.caller, viewOptionsOf(world))
        for (const { id } of full.tools) {
          const { outcome, reasons } = view.explain(id)
          if (outcome !== 'deny') continue
          const denials = reasons.filter((reason) => reason.outcome === 'deny')
          const messages = denials.map(({ message }) => message)
          const told = await tellOf(full, world, id)
          if (messages.every((message) => message !== undefined)) {
            assert.equal(told.text, `TOOL_CALL_BLOCKED: ${[...new Set(messages)].join(' ')}`)
          } else {
            const without = openWorld(world)
            without.offer(full.tools.map((tool) => tool.id).filter((other) => other !== id))
            assert.deepEqual(told, await tellOf(without, world, id))
          }
        }
      }),
      runs(300),
    )
  })

  it('shows in nothing else that a view says', async () => {
    await fc.assert(
      fc.asyncProperty(worldArbitrary, async (world) => {
        const full = openWorld(world)
        const view = await full.gate.view(world.caller, viewOptionsOf(world))
        const without = openWorld(world)
        const ids = full.tools.map(({ id }) => id).filter((id) => view.explain(id).outcome !== 'deny')
        without.offer(ids)
        const activeTools = world.activeTools?.filter((id) => ids.includes(id))
        const smaller = await without.gate.view(world.caller, viewOptionsOf({ ...world, activeTools }))
        assert.deepEqual(idsIn(smaller), idsIn(view))
        assert.equal(smaller.fingerprint, view.fingerprint)
      }),
      runs(150),
    )
  })
})

/** Everything of an answer that a caller gets: the decision behind it is the host's. */
async function tellOf({ gate }: Opened, world: World, tool: string): Promise<{ status: string; text: string }> {
  const { visibility, activeTools } = world
  const { catalog } = gate
  const view = await gate.view(world.caller, {
    visibility,
    activeTools: activeTools?.filter((id) => catalog.get(id)),
  })
  const { status, text } = await view.call({ tool, input: world.input, callId: 'call-1' })
  return { status, text }
}
