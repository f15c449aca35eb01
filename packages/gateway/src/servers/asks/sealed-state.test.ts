import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { memoryState } from '@toolgate/core/stores'
import { SealedStates, type StateBinding, StateInvalid, TooManyStates } from './sealed-state.ts'

const BOUND: StateBinding = {
  caller: { tenant: 'acme', user: 'vera' },
  client: 'k1',
  item: 'files:write',
  definition: 'd1',
  input: { path: '/a', lines: [1, 2] },
}
const CONTENT = { round: 1, inner: 'upstream' }
const START = Date.UTC(2026, 10, 22, 23, 55)
const MINUTE = 60_000

function setUp(options: object = {}) {
  const clock = { now: START, wallMs: () => clock.now }
  const state = memoryState({ clock })
  const open = () => new SealedStates({ state, clock, ...options })
  return { clock, state, open, sealed: open() }
}

async function assertInvalid(opening: Promise<unknown>): Promise<void> {
  const error: unknown = await opening.then(
    () => undefined,
    (caught: unknown) => caught,
  )
  assert.ok(error instanceof StateInvalid, String(error))
  assert.equal(error.message, 'params.requestState is invalid.')
}

describe('SealedStates', () => {
  it('opens what it has sealed, once', async () => {
    const { sealed } = setUp()
    const text = await sealed.seal(BOUND, CONTENT)
    assert.deepEqual(await sealed.open(BOUND, text), CONTENT)
    await assertInvalid(sealed.open(BOUND, text))
  })

  it('gives a state to one of two that open it at once', async () => {
    const { sealed } = setUp()
    const text = await sealed.seal(BOUND, CONTENT)
    const opened = await Promise.allSettled([sealed.open(BOUND, text), sealed.open(BOUND, text)])
    assert.deepEqual(opened.map(({ status }) => status).toSorted(), ['fulfilled', 'rejected'])
  })

  const others: Readonly<Record<string, Partial<StateBinding>>> = {
    'another user': { caller: { tenant: 'acme', user: 'eve' } },
    'another tenant': { caller: { tenant: 'evil', user: 'vera' } },
    'a caller without a tenant': { caller: { user: 'vera' } },
    'another client of the user': { client: 'k2' },
    'another app of the same user': { app: 'desk' },
    'another tool': { item: 'files:delete' },
    'a tool that has changed': { definition: 'd2' },
    'another input': { input: { path: '/b', lines: [1, 2] } },
    'no input': { input: undefined },
  }
  for (const [whose, other] of Object.entries(others)) {
    it(`cannot be opened for ${whose}, which does not use it up`, async () => {
      const { sealed } = setUp()
      const text = await sealed.seal(BOUND, CONTENT)
      await assertInvalid(sealed.open({ ...BOUND, ...other }, text))
      assert.deepEqual(await sealed.open(BOUND, text), CONTENT)
    })
  }

  it('opens for the same input in another order of its fields', async () => {
    const { sealed } = setUp()
    const text = await sealed.seal(BOUND, CONTENT)
    assert.deepEqual(await sealed.open({ ...BOUND, input: { lines: [1, 2], path: '/a' } }, text), CONTENT)
  })

  it('rejects an edited state, at any byte, and leaves the true one as it was', async () => {
    const { sealed } = setUp()
    const text = await sealed.seal(BOUND, CONTENT)
    for (let i = 0; i < text.length; i++) {
      const edited = text.slice(0, i) + (text[i] === 'A' ? 'B' : 'A') + text.slice(i + 1)
      await assertInvalid(sealed.open(BOUND, edited))
    }
    for (const forged of [
      undefined,
      1,
      {},
      '',
      'tg1',
      `${text}A`,
      text.slice(0, -4),
      text.toUpperCase(),
      'x'.repeat(2 ** 21),
    ])
      await assertInvalid(sealed.open(BOUND, forged))
    assert.deepEqual(await sealed.open(BOUND, text), CONTENT)
  })

  it('rejects a state of another gateway', async () => {
    const text = await setUp().sealed.seal(BOUND, CONTENT)
    await assertInvalid(setUp().sealed.open(BOUND, text))
  })

  it('expires', async () => {
    const { clock, sealed } = setUp()
    const text = await sealed.seal(BOUND, CONTENT)
    clock.now += 10 * MINUTE
    await assertInvalid(sealed.open(BOUND, text))
  })

  it('opens after a restart and after midnight, when new states have a new key', async () => {
    const { clock, open } = setUp()
    const before = await open().seal(BOUND, CONTENT)
    clock.now += 9 * MINUTE
    const after = await open().seal(BOUND, CONTENT)
    assert.notEqual(before.split('.')[1], after.split('.')[1])
    assert.deepEqual(await open().open(BOUND, before), CONTENT)
    assert.deepEqual(await open().open(BOUND, after), CONTENT)
  })

  it('says nothing about its content and its binding', async () => {
    const text = await setUp().sealed.seal(BOUND, CONTENT)
    const bytes = Buffer.from(text.split('.')[2] ?? '', 'base64url').toString('latin1')
    for (const word of ['upstream', 'vera', 'acme', 'files', 'round']) assert.ok(!bytes.includes(word))
  })

  it('bounds the open states of a user, and not those of others', async () => {
    const { clock, sealed } = setUp({ maxOpen: 2 })
    const first = await sealed.seal(BOUND, CONTENT)
    await sealed.seal(BOUND, CONTENT)
    await assert.rejects(sealed.seal(BOUND, CONTENT), TooManyStates)
    await sealed.seal({ ...BOUND, caller: { user: 'eve' } }, CONTENT)
    await sealed.open(BOUND, first)
    await sealed.seal(BOUND, CONTENT)
    clock.now += 10 * MINUTE
    await sealed.seal(BOUND, CONTENT)
  })
})
