import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { PersonStore, SeenPerson } from '@toolgate/core/stores'

export interface PeopleUnderTest {
  readonly store: PersonStore
  /** Returns another handle on the same people, like one in another process. */
  readonly beside: () => Promise<PersonStore>
}

type Make = (t: TestContext, options: { readonly max: number }) => Promise<PeopleUnderTest>

const NOW = 1_700_000_000_000

function person(user: string, own: Partial<SeenPerson> = {}): SeenPerson {
  const common = { issuer: 'https://a.example', by: 'token', roles: ['viewer'], scopes: [], clients: [] } as const
  return { user, ...common, firstSeenAt: NOW, lastSeenAt: NOW, ...own }
}

async function read(store: PersonStore): Promise<readonly SeenPerson[]> {
  const { people } = await store.read()
  return people.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
}

/** Defines the tests that every store of people passes. */
export function personStoreContract(name: string, make: Make): void {
  describe(`${name} (person store contract)`, () => {
    it('keeps people as they were noted, for every process', async (t) => {
      const { store, beside } = await make(t, { max: 10 })
      const vera = person('vera', {
        tenant: 'a\0\uD800"ü',
        attributes: { team: ['x'] },
        scopes: ['s'],
        clients: ['one', 'two'],
      })
      await store.note([vera, person('x'.repeat(256), { tenant: '\u0001'.repeat(256) })])
      assert.deepEqual(
        (await read(store)).find(({ user }) => user === 'vera'),
        vera,
      )
      assert.deepEqual(await read(await beside()), await read(store))
      assert.equal((await store.read()).count, 2)
    })

    it('keeps people of two issuers, and of two tenants, apart', async (t) => {
      const { store } = await make(t, { max: 10 })
      const three = [
        person('vera'),
        person('vera', { issuer: 'https://b.example' }),
        person('vera', { tenant: 'acme' }),
      ]
      await store.note(three)
      assert.equal((await store.read()).count, 3)
      assert.equal((await read(store)).length, 3)
    })

    it('keeps the earliest first time, and the rest of the latest note', async (t) => {
      const { store, beside } = await make(t, { max: 10 })
      await store.note([person('vera', { roles: ['admin'], firstSeenAt: NOW + 5, lastSeenAt: NOW + 9 })])
      await (await beside()).note([person('vera', { roles: ['viewer'], firstSeenAt: NOW, lastSeenAt: NOW + 2 })])
      assert.deepEqual(await read(store), [person('vera', { roles: ['admin'], lastSeenAt: NOW + 9 })])
      await store.note([person('vera', { roles: [], firstSeenAt: NOW + 9, lastSeenAt: NOW + 10 })])
      assert.deepEqual(await read(store), [person('vera', { roles: [], lastSeenAt: NOW + 10 })])
    })

    it('returns those who were noted since an earlier answer', async (t) => {
      const { store, beside } = await make(t, { max: 10 })
      const { at } = await store.read()
      await (await beside()).note([person('vera')])
      const { people, count } = await store.read(at)
      assert.deepEqual([people, count], [[person('vera')], 1])
    })

    it('removes those who were not seen for the longest time', async (t) => {
      const { store } = await make(t, { max: 3 })
      await store.note([3, 1, 4, 2].map((n) => person(`p${n}`, { lastSeenAt: NOW + n })))
      await store.note([person('p5', { lastSeenAt: NOW + 5 })])
      assert.deepEqual((await read(store)).map(({ user }) => user).toSorted(), ['p3', 'p4', 'p5'])
    })

    it('forgets a user of one tenant, of every issuer, and nobody else', async (t) => {
      const { store, beside } = await make(t, { max: 10 })
      const other = person('vera', { tenant: 'acme' })
      await store.note([person('vera'), person('vera', { issuer: 'key', by: 'key' }), other, person('nora')])
      assert.equal(await (await beside()).forget({ user: 'vera' }), 2)
      assert.equal(await store.forget({ user: 'vera' }), 0)
      assert.deepEqual((await read(store)).map(({ user, tenant }) => [user, tenant]).toSorted(), [
        ['nora', undefined],
        ['vera', 'acme'],
      ])
    })

    it('keeps what many processes note at once', async (t) => {
      const { store, beside } = await make(t, { max: 1000 })
      const stores = [store, await beside(), await beside()]
      const people = Array.from({ length: 50 }, (_, i) => person(`p${i}`))
      await Promise.all(
        stores.map(async (each, at) => {
          for (let i = 0; i < 5; i++) await each.note(at % 2 === 0 ? people : people.toReversed())
        }),
      )
      assert.equal((await store.read()).count, 50)
    })
  })
}
