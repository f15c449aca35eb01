import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { Clock, StateStore } from '@toolgate/core/stores'
import { type ManualClock, manualClock } from './manual-clock.ts'
import { toJsonText } from '@toolgate/values/json'

export interface StateUnderTest {
  readonly store: StateStore
  /** Returns another handle on the same state, as in another process. Absent if there can be no other process. */
  readonly beside?: () => Promise<StateStore>
}

type Make = (t: TestContext, options: { clock: Pick<Clock, 'wallMs'> }) => Promise<StateUnderTest>

/**
 * Defines the tests that every state store passes: entries are plain JSON, taken once, expire, and are visible to all.
 * @example
 * stateStoreContract('memoryState', async (_t, { clock }) => ({ store: memoryState({ clock }) }))
 */
export function stateStoreContract(name: string, make: Make): void {
  describe(`${name} (state store contract)`, () => {
    const open = async (t: TestContext): Promise<{ clock: ManualClock; store: StateStore; other: StateStore }> => {
      const clock = manualClock(NOW)
      const { store, beside } = await make(t, { clock })
      return { clock, store, other: (await beside?.()) ?? store }
    }

    it('gives what was set, and nothing where nothing was', async (t) => {
      const { store, other } = await open(t)
      assert.equal(await store.get('a'), undefined)
      await store.set('a', { n: 1 })
      assert.deepEqual([await store.get('a'), await other.get('a')], [{ n: 1 }, { n: 1 }])
      await other.set('a', { n: 2 })
      assert.deepEqual(await store.get('a'), { n: 2 })
    })

    for (const value of [
      null,
      true,
      0,
      -1.5,
      '',
      'ä\u2028\0🙂',
      [],
      {},
      [1, [null, { a: [] }]],
      { b: 1, a: { c: '' } },
      { id: 1915883588174806058n, text: '1915883588174806058' },
    ]) {
      it(`keeps ${toJsonText(value)} as it is`, async (t) => {
        const { store } = await open(t)
        await store.set('a', value)
        assert.deepEqual(await store.get('a'), value)
        assert.deepEqual(await store.list(''), [{ key: 'a', value }])
        assert.deepEqual(await store.take('a'), value)
      })
    }

    it('leaves out a field that is undefined, and keeps -0 as the 0 that JSON has', async (t) => {
      const { store } = await open(t)
      await store.set('a', { gone: undefined, kept: -0 })
      assert.deepEqual(await store.get('a'), { kept: 0 })
    })

    it('gives frozen values that later changes of the original do not reach', async (t) => {
      const { store } = await open(t)
      const value = { list: [{ n: 1 }] }
      await store.set('a', value)
      value.list[0] = { n: 2 }
      const given = (await store.get('a')) as typeof value
      assert.deepEqual(given, { list: [{ n: 1 }] })
      assert.throws(() => given.list.push({ n: 3 }), TypeError)
      assert.ok(Object.isFrozen(given.list[0]))
    })

    const cyclic: { self?: unknown } = {}
    cyclic.self = cyclic
    const misfits: readonly (readonly [string, unknown])[] = [
      ['nothing', undefined],
      ['a function', () => {}],
      ['a symbol', Symbol('s')],
      ['a bigint of too many digits', 10n ** 1000n],
      ['NaN', Number.NaN],
      ['an infinite number', { n: Number.POSITIVE_INFINITY }],
      ['a date', new Date(0)],
      ['a map', new Map()],
      ['a list with a hole', Array.from({ length: 2 }).with(0, 1)],
      ['a value that holds itself', cyclic],
      ['a lone surrogate', ['\uD800']],
      ['a field named __proto__', JSON.parse('{"__proto__":1}')],
      [
        'a getter that throws',
        {
          get a() {
            throw new Error('no')
          },
        },
      ],
      ['more than 1 MiB', 'x'.repeat(1024 * 1024 - 1)],
      ['more than 1 MiB in UTF-8', 'ä'.repeat(512 * 1024)],
    ]
    for (const [what, value] of misfits) {
      it(`refuses ${what}, and keeps what was there`, async (t) => {
        const { store } = await open(t)
        await store.set('a', 1)
        await assert.rejects(async () => store.set('a', value), { code: 'state_invalid' })
        await assert.rejects(async () => store.add('b', value), { code: 'state_invalid' })
        assert.deepEqual(await store.list(''), [{ key: 'a', value: 1 }])
      })
    }

    it('keeps a value of exactly 1 MiB', async (t) => {
      const { store } = await open(t)
      const value = 'x'.repeat(1024 * 1024 - 2)
      await store.set('a', value)
      assert.equal(await store.get('a'), value)
    })

    it('keeps keys apart, whatever they hold, up to 512 characters', async (t) => {
      const { store } = await open(t)
      const keys = ['a', 'A', 'a:b', ' ', '__proto__', 'constructor', '🙂', 'a\0', 'a\0b', '%', '_', 'x'.repeat(512)]
      for (const [i, key] of keys.entries()) await store.set(key, i)
      for (const [i, key] of keys.entries()) assert.equal(await store.get(key), i, JSON.stringify(key))
      assert.equal((await store.list('')).length, keys.length)
    })

    it('refuses a key that is empty, longer than 512 characters, or no well-formed text', async (t) => {
      const { store } = await open(t)
      for (const key of ['', 'x'.repeat(513), 'a\uD800', 5 as unknown as string]) {
        const asked = [
          async () => store.get(key),
          async () => store.set(key, 1),
          async () => store.add(key, 1),
          async () => store.take(key),
          ...(key === '' ? [] : [async () => store.list(key)]),
        ]
        for (const ask of asked) await assert.rejects(ask, { code: 'state_invalid' })
      }
    })

    it('adds only where there is nothing', async (t) => {
      const { store, other } = await open(t)
      assert.equal(await store.add('a', 1), true)
      assert.equal(await other.add('a', 2), false)
      assert.equal(await store.get('a'), 1)
      await store.take('a')
      assert.equal(await other.add('a', 3), true)
    })

    it('lets exactly one of many add', async (t) => {
      const { store, other } = await open(t)
      const added = await Promise.all(
        Array.from({ length: 100 }, async (_, i) => (i % 2 === 0 ? store : other).add('a', i)),
      )
      assert.equal(added.filter(Boolean).length, 1)
    })

    it('gives a value to exactly one of many who take it', async (t) => {
      const { store, other } = await open(t)
      await store.set('a', 'it')
      const taken = await Promise.all(
        Array.from({ length: 100 }, async (_, i) => (i % 2 === 0 ? store : other).take('a')),
      )
      assert.deepEqual(
        taken.filter((value) => value !== undefined),
        ['it'],
      )
      assert.equal(await store.get('a'), undefined)
    })

    it('is without a value from its expiry on, and not a millisecond before', async (t) => {
      const { clock, store } = await open(t)
      for (const key of ['a', 'b', 'c', 'd']) await store.set(key, 1, { expiresAt: NOW + 1000 })
      clock.advance(999)
      assert.equal(await store.get('a'), 1)
      assert.equal((await store.list('')).length, 4)
      assert.equal(await store.add('b', 2), false)
      clock.advance(1)
      assert.equal(await store.get('a'), undefined)
      assert.equal(await store.take('b'), undefined)
      assert.equal(await store.add('c', 2), true)
      assert.deepEqual(await store.list(''), [{ key: 'c', value: 2 }])
      clock.advance(1_000_000)
      assert.equal(await store.get('c'), 2)
    })

    it('has no value again once its expiry was seen, when the clock goes back', async (t) => {
      const { clock, store, other } = await open(t)
      const seeing = { get: () => store.get('a'), take: () => store.take('a'), list: () => store.list('') }
      for (const [method, see] of Object.entries(seeing)) {
        await store.set('a', 1, { expiresAt: NOW + 1000 })
        await store.set('unseen', 1, { expiresAt: NOW + 5000 })
        clock.advance(1000)
        await see()
        clock.advance(-1000)
        assert.deepEqual([await store.get('a'), await other.get('a')], [undefined, undefined], method)
        assert.deepEqual(await store.list(''), [{ key: 'unseen', value: 1 }], 'what had not ended goes on')
        assert.equal(await store.add('a', 2), true)
      }
    })

    it('keeps no expiry of a value that was replaced', async (t) => {
      const { clock, store } = await open(t)
      await store.set('a', 1, { expiresAt: NOW + 10 })
      await store.set('a', 2)
      clock.advance(10)
      assert.equal(await store.get('a'), 2)
    })

    it('refuses an expiry that is no number', async (t) => {
      const { store } = await open(t)
      for (const expiresAt of [Number.NaN, '5' as unknown as number])
        await assert.rejects(async () => store.set('a', 1, { expiresAt }), { code: 'state_invalid' })
    })

    it('lists what begins with a prefix, in the order of the bytes of its keys', async (t) => {
      const { store, other } = await open(t)
      const keys = [
        'p:b',
        'p:',
        'p:a',
        'p:\uFFFD',
        'p:🙂',
        'p:A',
        'p',
        'q:a',
        'P:a',
        'p:\u{10FFFF}',
        'p:%',
        'p:ä',
        'p:a\0',
      ]
      for (const [i, key] of keys.entries()) await store.set(key, i)
      const found = (await other.list('p:')).map(({ key }) => key)
      assert.deepEqual(found, ['p:', 'p:%', 'p:A', 'p:a', 'p:a\0', 'p:b', 'p:ä', 'p:\uFFFD', 'p:🙂', 'p:\u{10FFFF}'])
      assert.equal((await store.list('')).length, keys.length)
      assert.deepEqual(await store.list('none'), [])
    })

    for (const [what, change] of CHANGES) {
      it(`calls its listeners after ${what}`, async (t) => {
        const { store, other } = await open(t)
        await store.set('there', 1)
        const watched = watch(t, store)
        const elsewhere = watch(t, other)
        await change(store)
        await Promise.all([watched.called, elsewhere.called])
      })
    }

    it('shows a listener the change that it is called for', async (t) => {
      const { store, other } = await open(t)
      const seen = Promise.withResolvers<unknown>()
      t.after(other.subscribe(() => seen.resolve(other.get('a'))))
      await store.set('a', 1)
      assert.equal(await seen.promise, 1)
    })

    it('calls no listener that was ended, and the others whatever one throws', async (t) => {
      const { store } = await open(t)
      let calls = 0
      const listener = () => void calls++
      store.subscribe(listener)()
      t.after(
        store.subscribe(() => {
          throw new Error('no')
        }),
      )
      const last = watch(t, store)
      await store.set('a', 1)
      await last.called
      assert.equal(calls, 0)
    })
  })
}

const NOW = 1_700_000_000_000

const CHANGES: readonly (readonly [string, (store: StateStore) => unknown])[] = [
  ['a value was set', (store) => store.set('new', 1)],
  ['a value was replaced', (store) => store.set('there', 2)],
  ['a value was added', (store) => store.add('new', 1)],
  ['a value was taken', (store) => store.take('there')],
]

function watch(t: TestContext, store: StateStore): { readonly called: Promise<void> } {
  const { promise, resolve } = Promise.withResolvers<void>()
  t.after(store.subscribe(() => resolve()))
  return { called: promise }
}
