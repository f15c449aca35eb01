import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { createGate, type Gate } from '../gate/gate.ts'
import type { Admission, Place } from '../ports/ports.ts'

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
  it('is asked only while a tool needs a place', async () => {
    const asked: (string | undefined)[] = []
    const admission = {
      isNeeded: false as boolean,
      admit({ namespace }: { readonly namespace: string | undefined }): undefined {
        asked.push(namespace)
      },
    } satisfies Admission
    const view = await createGate({ tools: { 'web:find': { execute: () => 'found' } }, admission }).view({})
    assert.equal((await view.call({ tool: 'web:find' })).status, 'done')
    assert.deepEqual(asked, [])
    admission.isNeeded = true
    assert.equal((await view.call({ tool: 'web:find' })).status, 'done')
    assert.deepEqual(asked, ['web'])
  })

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

  it('may be waited for, and the call is decided again after it', async () => {
    const { gate, coming, held, ran } = waiting()
    const first = (await gate.view({ user: 'vera' })).call({ tool: 'browser:open' })
    await turn()
    coming.resolve({ release: () => void held.count-- })
    assert.equal((await first).status, 'done')
    const second = waiting()
    const call = (await second.gate.view({ user: 'vera' })).call({ tool: 'browser:open' })
    second.gate.setPolicy({ deny: ['*'] })
    second.held.count = 1
    second.coming.resolve({ release: () => void second.held.count-- })
    assert.equal((await call).status, 'refused')
    assert.deepEqual([held.count, second.held.count, ran.count, second.ran.count], [-1, 0, 1, 0])
  })

  it('ends to be waited for when the caller leaves, a halt comes or the gate closes; a late place is released', async () => {
    let leave = new AbortController()
    const ends: readonly [string, (gate: Gate) => unknown][] = [
      ['caller_gone', () => leave.abort()],
      ['halted', (gate) => gate.halt({ all: true, reason: 'stop' })],
      ['gate_closed', (gate) => void gate.close()],
    ]
    for (const [code, end] of ends) {
      leave = new AbortController()
      const { gate, coming, held, ran } = waiting()
      const call = (await gate.view({ user: 'vera' })).call({ tool: 'browser:open', signal: leave.signal })
      await turn()
      await end(gate)
      const outcome = await call
      assert.ok(outcome.status === 'refused')
      assert.equal(outcome.decision.reasons[0]?.code, code)
      held.count = 1
      coming.resolve({ release: () => void held.count-- })
      await turn()
      assert.deepEqual([held.count, ran.count], [0, 0])
    }
  })
})

/** A gate whose one place comes when the test gives it. */
function waiting() {
  const coming = Promise.withResolvers<Place>()
  const held = { count: 0 }
  const ran = { count: 0 }
  const gate = createGate({
    tools: { 'browser:open': { execute: () => ran.count++ } },
    admission: { admit: () => coming.promise },
  })
  return { gate, coming, held, ran }
}
