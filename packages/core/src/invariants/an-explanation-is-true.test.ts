import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { mayStillNow, refusedNow } from '../gate/may-still-now.ts'
import { runs } from '../../../testing/src/runs.ts'
import { idsIn, inputOf, openWorld, viewOptionsOf, worldArbitrary } from '../../../testing/support/worlds.ts'

describe('an explanation', () => {
  const limits = fc.constantFrom(undefined, '*:1/60', [
    'a*:1/60',
    { match: 'b*', max: 2, windowMs: 60_000, cost: '2', per: ['user'] as const },
  ])

  it('is true for every input: where nothing may still be against a call, any call that fits the schema runs now', async () => {
    let plain = 0
    await fc.assert(
      fc.asyncProperty(
        worldArbitrary,
        limits,
        fc.array(fc.nat(9), { maxLength: 4 }),
        async (world, written, earlier) => {
          const { gate, tools } = openWorld(world, written === undefined ? {} : { limits: written })
          const view = await gate.view(world.caller, viewOptionsOf(world))
          const visible = idsIn(view)
          for (const at of earlier) {
            const item = tools.find(({ id }) => id === visible[at])
            if (item) await view.call({ tool: item.id, input: inputOf(world, item) })
          }
          const now = await refusedNow(view, visible)
          for (const item of tools) {
            const { outcome, mayStill } = view.explain(item.id)
            const still = await mayStillNow(view, item.id)
            const open = mayStill.filter(({ on }) => on !== 'now').map(({ text, on }) => `${on} ${text}`)
            assert.deepEqual(
              still.map(({ text, on }) => `${on} ${text}`),
              [...open, ...(now.get(item.id) ?? []).map(({ text, on }) => `${on} ${text}`)],
            )
            if (outcome !== 'allow' || still.length > 0) continue
            for (const input of [inputOf(world, item), inputOf({ ...world, input: { path: '/b' } }, item)]) {
              const preview = await view.preview({ tool: item.id, input })
              const codes = preview.decision.reasons.map(({ code }) => code)
              if (codes.includes('input_invalid') || codes.includes('tool_not_executable')) continue
              plain++
              assert.equal(preview.status, 'allow', `${item.id}: ${codes.join()}`)
            }
          }
        },
      ),
      runs(300, 15_000, 100),
    )
    assert.ok(plain >= 20, `${plain} plain allows`)
  })
})
