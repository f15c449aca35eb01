import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate } from '../gate/gate.ts'
import type { Admission } from '../ports/ports.ts'

/** An admission with some places, and a gate whose tools `browser:*` need one. */
function world(places: number, given: { limits?: string; fails?: boolean } = {}) {
  let held = 0
  let asked = 0
  const admission: Admission = {
    admit({ namespace }) {
      asked++
      if (given.fails) throw new Error('broken')
      if (namespace !== 'browser') return undefined
      if (held === places) return { text: `all ${places} are taken`, message: 'all your instances are in use' }
      held++
      return { release: () => void held-- }
    },
  }
  const running: PromiseWithResolvers<string>[] = []
  const gate = createGate({
    tools: {
      'browser:open': {
        execute: () => (running[running.push(Promise.withResolvers()) - 1] as (typeof running)[0]).promise,
      },
      'browser:read': {
        async *execute() {
          yield 'a'
          yield 'b'
        },
      },
      notes: { execute: () => 'noted' },
      secret: { execute: () => 'told' },
    },
    admission,
    policy: { deny: ['secret'] },
    ...(given.limits ? { limits: given.limits } : {}),
    onFault: () => {},
  })
  return { gate, running, held: () => held, asked: () => asked }
}

describe('admission', () => {
  it('holds a place for as long as a call runs', async () => {
    const { gate, running, held } = world(2)
    const view = await gate.view({ user: 'vera' })
    const first = view.call({ tool: 'browser:open' })
    const second = view.call({ tool: 'browser:open' })
    assert.equal(held(), 2)
    running[0]?.resolve('opened')
    assert.equal((await first).status, 'done')
    assert.equal(held(), 1)
    running[1]?.reject(new Error('crashed'))
    assert.equal((await second).status, 'failed')
    assert.equal(held(), 0)
  })

  it('refuses a call without a place as `wait`, with the reason, and takes nothing for it', async () => {
    const { gate, running } = world(1, { limits: 'browser:*:2/60' })
    const view = await gate.view({ user: 'vera' })
    const first = view.call({ tool: 'browser:open' })
    for (let i = 0; i < 5; i++) {
      const refused = await view.call({ tool: 'browser:open' })
      assert.ok(refused.status === 'refused')
      assert.equal(refused.decision.outcome, 'wait')
      assert.deepEqual(
        refused.decision.reasons.map(({ code, layer, text }) => ({ code, layer, text })),
        [{ code: 'no_capacity', layer: 'limits', text: 'all 1 are taken' }],
      )
      assert.equal(refused.text, 'browser:open is busy: all your instances are in use. Try again later.')
    }
    running[0]?.resolve('opened')
    await first
    const next = view.call({ tool: 'browser:open' })
    running[1]?.resolve('opened')
    assert.equal((await next).status, 'done')
  })

  it('gives the place back if a later check stops the call', async () => {
    const { gate, running, held } = world(5, { limits: 'browser:*:1/60' })
    const view = await gate.view({ user: 'vera' })
    const first = view.call({ tool: 'browser:open' })
    assert.equal((await view.call({ tool: 'browser:open' })).status, 'refused')
    assert.equal(held(), 1)
    running[0]?.resolve('opened')
    await first
    assert.equal(held(), 0)
  })

  it('holds the place of a stream until the stream has ended', async () => {
    const { gate, held } = world(1)
    const outcome = await (await gate.view({ user: 'vera' })).call({ tool: 'browser:read' })
    assert.ok(outcome.status === 'done')
    assert.equal(held(), 1)
    for await (const part of outcome.output as AsyncIterable<string>) assert.ok(part)
    assert.equal(held(), 0)
  })

  it('is not asked about a call that is refused before it, and other tools need no place', async () => {
    const { gate, asked, held } = world(0)
    const view = await gate.view({ user: 'vera' })
    assert.equal((await view.call({ tool: 'secret' })).status, 'refused')
    assert.equal(asked(), 0)
    assert.equal((await view.call({ tool: 'notes' })).status, 'done')
    assert.equal(held(), 0)
  })

  it('refuses the call where it fails', async () => {
    const { gate } = world(1, { fails: true })
    const refused = await (await gate.view({ user: 'vera' })).call({ tool: 'browser:open' })
    assert.ok(refused.status === 'refused')
    assert.equal(refused.decision.reasons[0]?.code, 'store_failed')
  })
})
