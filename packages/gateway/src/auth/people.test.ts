import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Caller, defineCaller } from '@toolgate/core'
import { memoryPeople, type PersonStore } from '@toolgate/core/stores'
import { manualClock } from '@toolgate/testing'
import type { Credential } from './credential.ts'
import { People, toCaller } from './people.ts'

const A = 'https://a.example'
const B = 'https://b.example'
const MINUTE_MS = 60_000

async function setStage(store: PersonStore = memoryPeople()) {
  const clock = manualClock()
  const lines: string[] = []
  const open = async () => {
    const people = new People({ clock, log: ({ message }) => lines.push(message) })
    await people.open(store)
    return people
  }
  return { clock, store, lines, open, people: await open() }
}

function tokenOf(caller: Caller, issuer = A, client?: string): Credential {
  return { id: 'id', for: 'mcp', caller: defineCaller(caller), issuer, ...(client !== undefined && { client }) }
}

describe('People', () => {
  it('notes a person once a minute, and at once when the roles of their token change', async () => {
    const { clock, store, people } = await setStage()
    const token = tokenOf({ user: 'a/vera', roles: ['viewer'] })
    people.noteRequest(token)
    const firstSeenAt = clock.wallMs()
    clock.advance(MINUTE_MS - 1)
    people.noteRequest(token)
    assert.equal(people.of('a/vera')[0]?.lastSeenAt, firstSeenAt)
    clock.advance(1)
    people.noteRequest(token)
    people.noteRequest(tokenOf({ user: 'a/vera', roles: ['admin'] }))
    await people.close()
    const { people: kept } = await store.read()
    assert.deepEqual(
      kept.map((one) => [one.user, one.roles, one.firstSeenAt, one.lastSeenAt]),
      [['a/vera', ['admin'], firstSeenAt, firstSeenAt + MINUTE_MS]],
    )
  })

  it('keeps what people call them for pages, and decides nothing by it', async () => {
    const { clock, store, people, open } = await setStage()
    const token = { ...tokenOf({ user: 'a/vera', roles: ['viewer'] }), label: 'Vera Vance' }
    people.noteRequest(token)
    clock.advance(MINUTE_MS)
    people.noteLogin(defineCaller({ user: 'a/vera', roles: ['approver'] }), A)
    assert.equal(people.of('a/vera')[0]?.label, 'Vera Vance')
    people.noteLogin(defineCaller({ user: 'a/vera', roles: ['approver'] }), A, 'Vera V.')
    await people.close()
    assert.equal((await store.read()).people[0]?.label, 'Vera V.')
    const [again] = (await open()).of('a/vera')
    assert.ok(again)
    assert.equal(toCaller(again), toCaller(again), 'one object, by which views are found')
    assert.deepEqual(toCaller(again), { user: 'a/vera', roles: ['viewer'], scopes: [] })
  })

  it('keeps people of two issuers, and of two tenants, apart', async () => {
    const { people } = await setStage()
    people.noteRequest(tokenOf({ user: 'vera', roles: ['viewer'] }, A))
    people.noteRequest(tokenOf({ user: 'vera', roles: ['admin'] }, B))
    people.noteRequest(tokenOf({ user: 'vera', tenant: 'acme', roles: [] }, A))
    assert.deepEqual(
      people.of('vera').map(({ issuer, tenant, roles }) => [issuer, tenant, roles]),
      [
        [A, undefined, ['viewer']],
        [B, undefined, ['admin']],
        [A, 'acme', []],
      ],
    )
    await people.close()
  })

  it('keeps the roles of a login to the console beside those of the latest token', async () => {
    const { people } = await setStage()
    people.noteLogin(defineCaller({ user: 'a/vera', roles: ['approver'] }), A)
    const of = () => people.of('a/vera').map(({ by, roles, consoleRoles }) => [by, roles, consoleRoles])
    assert.deepEqual(of(), [['login', [], ['approver']]])
    people.noteRequest(tokenOf({ user: 'a/vera', roles: ['writer'] }))
    assert.deepEqual(of(), [['token', ['writer'], ['approver']]])
    people.noteLogin(defineCaller({ user: 'a/vera', roles: ['operator'] }), A)
    assert.deepEqual(of(), [['login', ['writer'], ['operator']]])
    await people.close()
  })

  describe('those who may decide', () => {
    const DAY_MS = 24 * 60 * MINUTE_MS
    const of = (user: string, tenant: string | undefined, ...roles: string[]) =>
      defineCaller({ user, ...(tenant !== undefined && { tenant }), roles })
    async function setConsole() {
      const clock = manualClock()
      const given = { roles: new Set(['approver', 'viewer']) }
      const loginRoles = (issuer: string) => (issuer === A ? given.roles : new Set<string>())
      const people = new People({ clock, log: () => {}, otherNames: () => ['vera'], loginRoles })
      await people.open(memoryPeople())
      const names = (tenant?: string) => people.deciders(tenant).map(({ caller }) => caller.user)
      return { clock, people, given, names }
    }

    it('are people of a tenant who logged in to the console with roles', async () => {
      const { people } = await setConsole()
      people.noteLogin(of('a/vera', 'acme', 'approver'), A)
      people.noteLogin(of('a/zoe', 'acme'), A)
      people.noteRequest(tokenOf({ user: 'a/otto', tenant: 'acme', roles: ['approver'] }))
      const vera = { user: 'a/vera', tenant: 'acme', roles: ['approver'], aliases: ['vera'] }
      assert.deepEqual(
        people.deciders('acme').map(({ caller }) => caller),
        [vera],
      )
      assert.deepEqual([people.deciders(undefined), people.deciders('globex')], [[], []])
      await people.forget({ user: 'a/vera', tenant: 'acme' })
      assert.deepEqual(people.deciders('acme'), [])
      await people.close()
    })

    it('are no longer those whom a login refused, who stayed away, or whose roles the file does not give', async () => {
      const { clock, people, given, names } = await setConsole()
      for (const user of ['ada', 'bob', 'eve']) people.noteLogin(of(user, undefined, 'approver'), A)
      people.noteLogin(of('mia', undefined, 'approver'), 'https://former.example')
      assert.deepEqual(names(), ['ada', 'bob', 'eve'])
      people.noteRefusedLogin(of('eve', undefined, 'some-group'), A)
      people.noteRefusedLogin(of('a-stranger', undefined), A)
      assert.deepEqual(names(), ['ada', 'bob'])
      assert.deepEqual(people.of('a-stranger'), [])
      clock.advance(29 * DAY_MS)
      people.noteLogin(of('bob', undefined, 'approver'), A)
      clock.advance(2 * DAY_MS)
      assert.deepEqual(names(), ['bob'])
      given.roles = new Set(['viewer'])
      people.noteLogin(of('zoe', undefined, 'viewer'), A)
      assert.deepEqual(names(), ['zoe'])
      await people.close()
    })

    it('are 100 of each tenant, approvers first, so that a large tenant hides nobody of another', async () => {
      const { clock, people, names } = await setConsole()
      people.noteLogin(of('ada', 'small', 'approver'), A)
      people.noteLogin(of('ada', 'large', 'approver'), A)
      for (let i = 0; i < 200; i++) {
        clock.advance(1)
        people.noteLogin(of(`u${i}`, 'large', 'viewer'), A)
      }
      assert.deepEqual(names('small'), ['ada'])
      assert.deepEqual([names('large').length, ...names('large').slice(0, 2)], [100, 'ada', 'u199'])
      await people.close()
    })
  })

  it('does not bring somebody back whom a read in progress still has', async (t) => {
    const { store, clock } = await setStage()
    t.mock.timers.enable({ apis: ['setInterval'] })
    let answer = () => {}
    const slow: PersonStore = {
      ...store,
      async read(since) {
        const now = await store.read(since)
        if (since !== undefined) await new Promise<void>((resolve) => (answer = resolve))
        return { ...now, count: 100 }
      },
    }
    const people = new People({ clock, log: () => {} })
    await people.open(slow)
    people.noteRequest(tokenOf({ user: 'a/vera' }))
    await people.write()
    t.mock.timers.tick(5000)
    await new Promise(setImmediate)
    const forgetting = people.forget({ user: 'a/vera' })
    await new Promise(setImmediate)
    answer()
    assert.equal(await forgetting, 1)
    await new Promise(setImmediate)
    assert.deepEqual(people.of('a/vera'), [])
    await people.close()
  })

  it('remembers 8 clients, the latest first', async () => {
    const { clock, people } = await setStage()
    for (let i = 0; i < 10; i++) {
      people.noteRequest(tokenOf({ user: 'a/vera', client: `c${i}` }, A, `c${i}`))
      clock.advance(MINUTE_MS)
    }
    const [vera] = people.of('a/vera')
    assert.deepEqual([vera?.clients.length, vera?.clients[0], vera?.clients[7]], [8, 'c9', 'c2'])
    await people.close()
  })

  it('survives a restart', async () => {
    const { people, open } = await setStage()
    people.noteRequest(tokenOf({ user: 'a/vera', roles: ['viewer'] }))
    await people.close()
    const later = await open()
    assert.deepEqual(later.of('a/vera')[0]?.roles, ['viewer'])
    await later.close()
  })

  it('forgets a user until they come again', async () => {
    const { people } = await setStage()
    const token = tokenOf({ user: 'a/vera', tenant: 'acme' })
    people.noteRequest(token)
    people.noteRequest(tokenOf({ user: 'a/vera' }))
    assert.equal(await people.forget({ user: 'a/vera', tenant: 'acme' }), 1)
    assert.deepEqual(
      people.of('a/vera').map(({ tenant }) => tenant),
      [undefined],
    )
    people.noteRequest(token)
    assert.equal(people.of('a/vera').length, 2)
    await people.close()
  })

  it('writes later what a store could not write, and logs one line', async () => {
    const memory = memoryPeople()
    let isDown = true
    const note: PersonStore['note'] = (people) => {
      if (isDown) throw new Error('down')
      return memory.note(people)
    }
    const { people, lines } = await setStage({ ...memory, note })
    people.noteRequest(tokenOf({ user: 'a/vera' }))
    await people.write()
    await people.write()
    assert.deepEqual(lines, ['people cannot be recorded now: down'])
    isDown = false
    await people.close()
    assert.equal((await memory.read()).count, 1)
  })
})
