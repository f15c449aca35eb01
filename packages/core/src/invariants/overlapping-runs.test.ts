import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { callerArbitrary, openWorld, type Opened, type World, worldArbitrary } from '../../../testing/support/worlds.ts'
import { runs } from '../../../testing/src/runs.ts'

describe('runs that overlap on one gate', () => {
  it('each see what they would see alone', async () => {
    const runArbitrary = fc.record({
      caller: callerArbitrary,
      shown: fc.option(fc.nat(5), { nil: undefined }),
      active: fc.option(fc.nat(5), { nil: undefined }),
      pauses: fc.array(fc.nat(3), { maxLength: 4 }),
    })
    await fc.assert(
      fc.asyncProperty(worldArbitrary, fc.array(runArbitrary, { minLength: 2, maxLength: 6 }), async (world, plans) => {
        const shared = openWorld(world)
        const together = await Promise.all(plans.map((plan) => carryOut(shared, world, plan)))
        for (const [i, plan] of plans.entries()) {
          assert.deepEqual(together[i], await carryOut(openWorld(world), world, plan))
        }
      }),
      runs(150),
    )
  })

  it('are given nothing that one of them could change for the others', async () => {
    await fc.assert(
      fc.asyncProperty(worldArbitrary, async (world) => {
        const { gate } = openWorld(world)
        const view = await gate.view(world.caller)
        assertFrozen(view.tools)
        assertFrozen(view.ids)
        assertFrozen(view.caller)
        assert.ok(Object.isFrozen(view))
      }),
      runs(50),
    )
  })
})

interface Plan {
  readonly caller: World['caller']
  readonly shown: number | undefined
  readonly active: number | undefined
  readonly pauses: readonly number[]
}

/** One run: a view of its own, and a call of every tool, with turns of the event loop between. */
async function carryOut({ gate, tools }: Opened, { input }: World, plan: Plan): Promise<unknown> {
  const ids = tools.map(({ id }) => id)
  const turns = async (at: number) => {
    for (let i = 0; i < (plan.pauses[at] ?? 0); i++) await Promise.resolve()
  }
  const view = await gate.view(plan.caller, {
    visibility:
      plan.shown === undefined
        ? undefined
        : async ({ tools: offered }) => {
            await turns(0)
            return offered.slice(plan.shown)
          },
  })
  const step = plan.active === undefined ? view : view.narrow({ activeTools: ids.slice(plan.active) })
  const answers: unknown[] = [step.ids, step.fingerprint, step.failure]
  for (const [i, tool] of ids.entries()) {
    await turns(i)
    const { status, text } = await step.call({ tool, input })
    answers.push([status, text, step.explain(tool)])
  }
  return answers
}

function assertFrozen(value: unknown): void {
  if (typeof value !== 'object' || value === null) return
  assert.ok(Object.isFrozen(value), `${JSON.stringify(value)} is not frozen`)
  for (const item of Object.values(value)) assertFrozen(item)
}
