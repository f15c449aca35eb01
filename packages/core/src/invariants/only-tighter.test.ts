import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import type { OutcomeWord } from '../decide/decision.ts'
import { toPolicy } from '../../../testing/support/policies.ts'
import {
  idsIn,
  idsOf,
  inputOf,
  isNoWider,
  openWorld,
  viewOptionsOf,
  type World,
  type WorldWithMore,
  worldWithMore,
} from '../../../testing/support/worlds.ts'
import type { View } from '../gate/view.ts'
import type { Tool } from '../tools/tool.ts'
import { runs } from '../../../testing/src/runs.ts'

describe('a layer', () => {
  const additions: readonly (readonly [what: string, add: (given: WorldWithMore) => World])[] = [
    ['policy', ({ world, more }) => ({ ...world, policies: [...world.policies, ...more] })],
    ['policy before the others', ({ world, more }) => ({ ...world, policies: [...more, ...world.policies] })],
    ['visibility', ({ world }) => ({ ...world, visibility: (world.visibility ?? idsOf(world)).slice(1) })],
    ['list of active tools', ({ world }) => ({ ...world, activeTools: (world.activeTools ?? idsOf(world)).slice(1) })],
    ['group that is unavailable', ({ world }) => ({ ...world, up: world.up.slice(1) })],
    ['scope that is lost', ({ world }) => ({ ...world, caller: { ...world.caller, scopes: [] } })],
  ]
  for (const [what, add] of additions) {
    it(`only tightens: ${what}`, async () => {
      await fc.assert(
        fc.asyncProperty(worldWithMore, async (given) => {
          const before = await wordsOf(given.world)
          const after = await wordsOf(add(given))
          for (const [id, words] of before) {
            const [seen, called] = after.get(id) as Words
            assert.ok(isNoWider(seen, words[0]), `${id} was ${words[0]} and is ${seen}`)
            assert.ok(called >= words[1], `a call of ${id} was ${words[1]} and is ${called}`)
          }
        }),
        runs(150),
      )
    })
  }

  it('only tightens: what a view is narrowed by', async () => {
    await fc.assert(
      fc.asyncProperty(worldWithMore, fc.boolean(), async ({ world, more }, twice) => {
        const { gate, tools } = openWorld(world)
        const view = await gate.view(world.caller, viewOptionsOf(world))
        const once = view.narrow({ policy: more.map(toPolicy), activeTools: idsOf(world).slice(0, 3) })
        const narrow = twice ? once.narrow({ activeTools: idsOf(world) }) : once
        for (const item of tools) {
          const { id } = item
          assert.ok(isNoWider(narrow.explain(id).outcome, view.explain(id).outcome))
          assert.ok(isNoWider(narrow.explain(id).outcome, once.explain(id).outcome))
          assert.ok((await callOf(narrow, item, world)) >= (await callOf(view, item, world)))
        }
        assert.ok(idsIn(narrow).every((id) => view.has(id)))
      }),
      runs(150),
    )
  })

  it('gives the same in whatever order the policies are', async () => {
    await fc.assert(
      fc.asyncProperty(worldWithMore, async ({ world, more }) => {
        const policies = [...world.policies, ...more]
        const forth = await wordsOf({ ...world, policies })
        const back = await wordsOf({ ...world, policies: policies.toReversed() })
        assert.deepEqual(back, forth)
      }),
      runs(150),
    )
  })

  it('gives the same whether a policy is the gate’s or narrows the view', async () => {
    await fc.assert(
      fc.asyncProperty(worldWithMore, async ({ world, more }) => {
        const { gate, tools } = openWorld({ ...world, policies: [...world.policies, ...more] })
        const { gate: wider } = openWorld(world)
        const whole = await gate.view(world.caller, viewOptionsOf(world))
        const narrow = (await wider.view(world.caller, viewOptionsOf(world))).narrow({ policy: more.map(toPolicy) })
        assert.deepEqual(idsIn(narrow), idsIn(whole))
        assert.equal(narrow.fingerprint, whole.fingerprint)
        for (const item of tools) {
          const { id } = item
          assert.equal(narrow.explain(id).outcome, whole.explain(id).outcome)
          assert.equal(await callOf(narrow, item, world), await callOf(whole, item, world))
        }
      }),
      runs(150),
    )
  })
})

type Words = readonly [seen: OutcomeWord, called: number]

async function wordsOf(world: World): Promise<Map<string, Words>> {
  const { gate, tools } = openWorld(world)
  const view = await gate.view(world.caller, viewOptionsOf(world))
  const words = new Map<string, Words>()
  for (const item of tools) words.set(item.id, [view.explain(item.id).outcome, await callOf(view, item, world)])
  return words
}

/** How far a call gets: 0 runs, 1 waits for a person, 2 is refused. Which refusal is told first is another matter. */
async function callOf(view: View, item: Tool, world: World): Promise<number> {
  const { status } = await view.call({ tool: item.id, input: inputOf(world, item) })
  return ['done', 'waiting', 'refused'].indexOf(status)
}
