import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import type { App, AppImport } from '../groups/app.ts'
import { toPolicy, type WrittenPolicy } from '../../../testing/support/policies.ts'
import { referenceDecide } from '../../../testing/support/reference.ts'
import {
  idOf,
  isNoWider,
  openWorld,
  viewOptionsOf,
  type WorldWithMore,
  worldWithMore,
} from '../../../testing/support/worlds.ts'
import { runs } from '../../../testing/src/runs.ts'

/** An app over a world, as data. */
interface WrittenApp {
  /** For each group of the world, by its place: what the app makes of it. */
  readonly imports: readonly ('none' | 'as it is' | 'conditional' | 'hidden')[]
  /** For each tool of the world, by its place: whether the app lists it itself. */
  readonly lists: readonly boolean[]
}

const writtenApp: fc.Arbitrary<WrittenApp> = fc.record({
  imports: fc.array(fc.constantFrom('none', 'as it is', 'conditional', 'hidden'), { minLength: 3, maxLength: 3 }),
  lists: fc.array(fc.boolean(), { minLength: 7, maxLength: 7 }),
}) as fc.Arbitrary<WrittenApp>

describe('an app', () => {
  it('is the gate’s view and what the app offers, under the policies of both: never wider, and never narrower', async () => {
    await fc.assert(
      fc.asyncProperty(worldWithMore, writtenApp, async ({ world, more }, written) => {
        const app = toApp(world, written, more)
        if (!app) return
        // A hint is taken at its word in an app's import only where it is certain, as in an allowlist.
        const offered = toPolicy({ allow: offersOf(world, written) })
        const { gate, tools, ran } = openWorld(world, { apps: { app, rest: { tools: ['*'] } } })
        const whole = await gate.view(world.caller, viewOptionsOf(world))
        const view = await gate.view(world.caller, { ...viewOptionsOf(world), app: 'app' })
        const met = whole.narrow({ policy: [offered, ...more.map(toPolicy)] })
        const hidden = new Set(hiddenBy(world, written))
        for (const { id } of tools) {
          const [seen, before] = [view.explain(id).outcome, whole.explain(id).outcome]
          assert.ok(isNoWider(seen, before), `${id} was ${before} and is ${seen} in the app`)
          assert.ok(isNoWider(seen, met.explain(id).outcome), `${id} is ${seen}, the app itself says otherwise`)
          if (view.has(id)) assert.ok(met.has(id))
          if (hidden.size === 0 && !written.imports.includes('conditional'))
            assert.equal(seen, met.explain(id).outcome, id)
          if (seen === 'deny' || seen === 'wait') {
            const runsBefore = ran.get(id) ?? 0
            for (const through of [view, view.narrow({ activeTools: [id], policy: { allow: ['*'] } })]) {
              assert.equal((await through.call({ tool: id, input: world.input })).status, 'refused')
            }
            assert.equal(ran.get(id) ?? 0, runsBefore, `${id} is hidden and ran`)
          }
        }
        assert.deepEqual(
          view.search('read').filter(({ id }) => !view.has(id)),
          [],
        )
        const rest = await gate.view(world.caller, { ...viewOptionsOf(world), app: 'rest' })
        assert.deepEqual(rest.ids, whole.ids, 'an app of everything is the gate')
      }),
      runs(150),
    )
  })

  it('hides the tools of a group that it hides, wherever else they are listed', async () => {
    await fc.assert(
      fc.asyncProperty(worldWithMore, writtenApp, async ({ world, more }, written) => {
        const app = toApp(world, written, more)
        if (!app) return
        const { gate, tools } = openWorld(world, { apps: { app } })
        const view = await gate.view(world.caller, { ...viewOptionsOf(world), app: 'app' })
        for (const name of hiddenBy(world, written))
          for (const id of gate.membersOf(name)) assert.equal(view.explain(id).outcome, 'deny')
        for (const tool of tools) {
          const isListed = written.lists[world.tools.findIndex((one) => idOf(one) === tool.id)] ?? false
          const isOut = !isListed && !Object.keys(world.groups).some((name) => gate.membersOf(name).includes(tool.id))
          if (isOut) assert.equal(view.explain(tool.id).outcome, 'deny', tool.id)
          assert.ok(isNoWider(view.explain(tool.id).outcome, referenceDecide(world, tool, false)))
        }
      }),
      runs(150),
    )
  })
})

type World = WorldWithMore['world']

function toApp(world: World, written: WrittenApp, policies: readonly WrittenPolicy[]): App | undefined {
  const groups = Object.keys(world.groups).flatMap((group, i): AppImport[] => {
    const made = written.imports[i] ?? 'none'
    if (made === 'none') return []
    return made === 'as it is' ? [group] : [{ group, visibility: made }]
  })
  const tools = listedBy(world, written)
  if (groups.length + tools.length === 0) return undefined
  return { import: groups, tools, policy: policies.map(toPolicy) }
}

function listedBy({ tools }: World, { lists }: WrittenApp): string[] {
  return tools.filter((_, i) => lists[i]).map(idOf)
}

/** What the app offers, as an allowlist says it. */
function offersOf(world: World, written: WrittenApp): { match: string[] }[] {
  const groups = Object.keys(world.groups).filter((_, i) => !['none', 'hidden'].includes(written.imports[i] ?? 'none'))
  const match = [...groups.map((group) => `group:${group}`), ...listedBy(world, written)]
  return match.length === 0 ? [] : [{ match }]
}

function hiddenBy(world: World, { imports }: WrittenApp): string[] {
  return Object.keys(world.groups).filter((_, i) => imports[i] === 'hidden')
}
