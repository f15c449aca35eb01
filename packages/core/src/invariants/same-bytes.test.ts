import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { createWireNames } from '../../../expose/src/names.ts'
import {
  idsIn,
  inputOf,
  openWorld,
  viewOptionsOf,
  type World,
  worldArbitrary,
} from '../../../testing/support/worlds.ts'
import { ITEM_KINDS } from '../tools/tool-id.ts'
import { runs } from '../../../testing/src/runs.ts'

describe('the same world', () => {
  it('gives the same bytes, in whatever order its parts were written', async () => {
    await fc.assert(
      fc.asyncProperty(worldArbitrary, fc.integer(), async (world, seed) => {
        assert.equal(await bytesOf(scramble(world, seed)), await bytesOf(world))
      }),
      runs(300),
    )
  })

  it('lists tools in the order of their ids’ UTF-8 bytes', async () => {
    await fc.assert(
      fc.asyncProperty(worldArbitrary, async (world) => {
        const { gate } = openWorld(world)
        const view = await gate.view(world.caller)
        for (const kind of ITEM_KINDS) {
          const ids = view.items(kind).map(({ id }) => id)
          assert.deepEqual(
            ids,
            ids.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))),
          )
        }
      }),
      runs(100),
    )
  })
})

/** Everything that a view says, as text. */
async function bytesOf(world: World): Promise<string> {
  const { gate, tools } = openWorld(world)
  const view = await gate.view(world.caller, viewOptionsOf(world))
  const ids = tools.map(({ id }) => id).toSorted()
  const names = createWireNames(gate.catalog.snapshot())
  const calls: unknown[] = []
  for (const tool of [...ids, 'no-such-tool']) {
    const item = gate.catalog.get(tool)
    const { status, text } = await view.call({ tool, input: item ? inputOf(world, item) : world.input })
    calls.push([status, text])
  }
  return JSON.stringify([idsIn(view), view.fingerprint, ids.map(view.explain), ids.map(names.toName), calls], null, 1)
}

/** The same tools in another order, and every object with its keys in another order. */
function scramble(world: World, seed: number): World {
  let state = seed
  const random = () => (state = (Math.imul(state, 1103515245) + 12345) | 0)
  const shuffled = <T>(items: readonly T[]): T[] =>
    items
      .map((item) => [random(), item] as const)
      .toSorted(([a], [b]) => a - b)
      .map(([, item]) => item)
  const rekeyed = <T>(value: T): T => {
    if (Array.isArray(value)) return value.map(rekeyed) as T
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(shuffled(Object.entries(value)).map(([key, item]) => [key, rekeyed(item)])) as T
  }
  const { tools, items, up, ...rest } = rekeyed(world)
  return { ...rest, tools: shuffled(tools), items: shuffled(items), up: shuffled(up) }
}
