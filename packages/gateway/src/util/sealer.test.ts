import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { memoryState } from '@toolgate/core/stores'
import { SEALED_MS, SecretSealer } from './sealer.ts'

const HOUR = 60 * 60_000
const START = Date.UTC(2026, 10, 22, 23, 55)

function setUp() {
  const clock = { now: START, wallMs: () => clock.now }
  const state = memoryState({ clock })
  const open = () => new SecretSealer({ state, clock })
  return { clock, state, open, sealer: open() }
}

describe('Sealer', () => {
  it('opens what it has sealed, also after a restart, for the same binding only', async () => {
    const { sealer, open } = setUp()
    const sealed = await sealer.seal('the text', { task: 1 })
    assert.equal(await open().open(sealed, { task: 1 }), 'the text')
    assert.equal(await open().open(sealed, { task: 2 }), undefined)
    assert.ok(!Buffer.from(sealed.split('.')[1] ?? '', 'base64url').includes('text'))
  })

  it('opens a text of many megabytes', async () => {
    const { sealer } = setUp()
    const text = 'x'.repeat(16 * 1024 * 1024)
    assert.ok((await sealer.open(await sealer.seal(text, 'vera'), 'vera')) === text)
  })

  it('opens nothing that was edited, cut or sealed elsewhere', async () => {
    const { sealer } = setUp()
    const sealed = await sealer.seal('the text', 1)
    for (let i = 0; i < sealed.length; i++) {
      const edited = sealed.slice(0, i) + (sealed[i] === 'A' ? 'B' : 'A') + sealed.slice(i + 1)
      assert.equal(await sealer.open(edited, 1), undefined)
    }
    for (const other of ['', '.', sealed.slice(0, -4), await setUp().sealer.seal('the text', 1)])
      assert.equal(await sealer.open(other, 1), undefined)
  })

  it('keeps a key for as long as a text can need it, and no longer', async () => {
    const { sealer, clock, state, open } = setUp()
    const sealed = await sealer.seal('the text', 1)
    clock.now += SEALED_MS
    assert.equal(await open().open(sealed, 1), 'the text')
    clock.now += HOUR
    assert.equal(await open().open(sealed, 1), undefined)
    assert.equal(await sealer.open(sealed, 1), undefined)
    assert.deepEqual(state.list(''), [])
  })

  it('opens nothing again whose key was seen to have ended, when the clock goes back, also after a restart', async () => {
    const { sealer, clock, open } = setUp()
    const sealed = await sealer.seal('the text', 1)
    clock.now += SEALED_MS + HOUR
    assert.equal(await sealer.open(sealed, 1), undefined)
    clock.now = START
    for (const one of [sealer, open()]) assert.equal(await one.open(sealed, 1), undefined)
    assert.equal(await sealer.open(await sealer.seal('new', 1), 1), 'new')
  })
})
