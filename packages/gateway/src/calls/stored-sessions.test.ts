import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import type { Caller } from '@toolgate/core'
import { memoryState, type StateStore } from '@toolgate/core/stores'
import { ownerOf } from '@toolgate/mcp'
import { IDLE_MS, Sessions } from './sessions.ts'
import { StoredSessions } from './stored-sessions.ts'

const CLIENT = { capabilities: { elicitation: { form: {} } }, protocolVersion: '2025-06-18' }
const VERA = Object.freeze({ user: 'vera', tenant: 'acme' })
const HOUR_MS = 60 * 60 * 1000

/** A store, and the processes that use it one after the other. */
function setUp(given: Partial<StateStore> = {}) {
  let now = 1_000_000
  const clock = { monotonicMs: () => now, wallMs: () => now }
  const state = { ...memoryState({ clock }), ...given }
  const faults: unknown[] = []
  const onFault = (error: unknown) => void faults.push(error)
  const start = () => {
    const opened = new Map<string | undefined, ReadonlySet<string>>()
    const stored = new StoredSessions({ state, clock, keptMs: IDLE_MS, onFault })
    const locks = {
      opened: (caller: Caller) => opened.get(caller.session) ?? new Set<string>(),
      reopen: (caller: Caller, groups: readonly string[]) => void opened.set(caller.session, new Set(groups)),
    }
    const sessions = new Sessions({ clock, keeper: stored, locks, onFault })
    return {
      sessions,
      locks,
      read: async (id: string) => (await stored.find(id)) ?? assert.fail('it is not stored'),
      /** What the endpoint does with the id of a request. */
      async find(id: string) {
        const known = sessions.find(VERA, id)
        const kept = known ? undefined : await stored.find(id)
        return known ?? (kept?.owner === ownerOf(VERA) ? sessions.restore(VERA, id, kept) : undefined)
      },
    }
  }
  return { start, state, faults, pass: (ms: number) => void (now += ms) }
}

async function begin({ sessions }: ReturnType<ReturnType<typeof setUp>['start']>) {
  const session = sessions.begin(VERA, CLIENT)
  await sessions.keep(session)
  return session
}

describe('StoredSessions', () => {
  it('never continue a session that is ended while it is read', async () => {
    const { start } = setUp()
    const { id } = await begin(start())
    const next = start()
    const kept = await next.read(id)
    await next.find(id)
    const ended = next.sessions.end(VERA, id)
    assert.equal(next.sessions.restore(VERA, id, kept), undefined)
    assert.equal(await ended, true)
    assert.equal(await next.find(id), undefined)
  })

  it('continue a session with all that it holds', async () => {
    const { start } = setUp()
    const first = start()
    const session = await begin(first)
    session.logLevel = 'error'
    session.subscriptions.set('file:///a', () => {})
    first.locks.reopen(session.callerOf(VERA), ['web'])
    first.sessions.unlocked(session.callerOf(VERA))
    await session.storing
    const second = start()
    const next = await second.find(session.id)
    assert.ok(next)
    const { capabilities, protocolVersion, logLevel, hasGap, owner } = next
    assert.deepEqual({ capabilities, protocolVersion }, CLIENT)
    assert.deepEqual([logLevel, hasGap, owner], ['error', true, session.owner])
    assert.deepEqual([...next.unresumed], ['file:///a'])
    assert.deepEqual([...second.locks.opened(next.callerOf(VERA))], ['web'])
    // The third process gets what the second could not begin again.
    await second.sessions.keep(next)
    assert.deepEqual([...((await start().find(session.id))?.unresumed ?? [])], ['file:///a'])
  })

  it('keep a session that is used, and drop one that nobody has used for a week', async () => {
    const { start, pass } = setUp()
    const first = start()
    const [used, unused] = [await begin(first), await begin(first)]
    for (let day = 0; day < 10; day++) {
      pass(24 * HOUR_MS)
      await first.find(used.id)
      await used.storing
    }
    const second = start()
    assert.ok(await second.find(used.id))
    assert.equal(await second.find(unused.id), undefined)
  })

  it('do not write at each use', async () => {
    let writes = 0
    const state = memoryState({ clock: { wallMs: () => 0 } })
    const { start, pass } = setUp({
      set: (...given) => {
        writes++
        return state.set(...given)
      },
    })
    const first = start()
    const session = await begin(first)
    for (let i = 0; i < 100; i++) {
      pass(HOUR_MS / 200)
      await first.find(session.id)
    }
    assert.equal(writes, 1)
  })

  it('never bring back a session that was ended, whatever is being written at the time', async () => {
    const { start, pass } = setUp()
    const first = start()
    const session = await begin(first)
    pass(2 * HOUR_MS)
    // This use stores the session again, while it ends.
    first.sessions.find(VERA, session.id)
    void first.sessions.keep(session)
    assert.equal(await first.sessions.end(VERA, session.id), true)
    await turn()
    assert.equal(await first.find(session.id), undefined)
    assert.equal(await start().find(session.id), undefined)
  })

  it('end a session here within an hour after another process has ended it', async () => {
    const { start, pass } = setUp()
    const [first, second] = [start(), start()]
    const session = await begin(first)
    assert.ok(await second.find(session.id))
    await second.sessions.end(VERA, session.id)
    pass(2 * HOUR_MS)
    await first.find(session.id)
    await turn()
    assert.equal(await first.find(session.id), undefined)
    assert.equal(await start().find(session.id), undefined)
  })

  it('let a session go on in its process when nothing can be written', async () => {
    const { start, pass, faults } = setUp({
      set: () => {
        throw new Error('the disk is full')
      },
    })
    const first = start()
    const session = await begin(first)
    pass(2 * HOUR_MS)
    assert.equal(await first.find(session.id), session)
    await turn()
    assert.equal(await first.find(session.id), session)
    assert.match(String(faults[0]), /the disk is full/)
  })

  it('reject when nothing can be read: nobody then knows that the session has ended', async () => {
    const { start } = setUp({
      get: () => {
        throw new Error('no disk')
      },
    })
    await assert.rejects(start().find('00000000-0000-4000-8000-000000000000'), /no disk/)
  })

  it('ask the store for ids of this gateway only, and read no row of another form', async () => {
    const asked: string[] = []
    const { start } = setUp({
      get: (key) => {
        asked.push(key)
        return { owner: 1 }
      },
    })
    for (const id of ['', 'x', '../keys', '__proto__', 'A'.repeat(10_000)])
      assert.equal(await start().find(id), undefined)
    assert.deepEqual(asked, [])
    assert.equal(await start().find('00000000-0000-4000-8000-000000000000'), undefined)
    assert.deepEqual(asked, ['gateway/session/00000000-0000-4000-8000-000000000000'])
  })
})
