import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { memoryState } from '@toolgate/core/stores'
import type { GroupBadge, GroupRow } from '../../model/rows.ts'
import type { ReplicaRow } from '../../replicas/replica-store.ts'
import { FleetGroups } from './fleet-groups.ts'
import type { WatchedGroupChange } from './group-watch.ts'

const clock = { wallMs: () => 0, monotonicMs: () => 0 }

/** Replicas on one state, whose groups a test sets. */
function setup() {
  const state = memoryState({ clock })
  const all = new Map<string, ReplicaRow>()
  const replicas = async () => [...all.values()]
  const start = (id: string, badges: Record<string, GroupBadge>) => {
    const self = { id, incarnation: `start of ${id}` }
    all.set(id, { ...self, version: '1', applied: 0, isLive: true, word: {}, joinedAt: 0, renewedAt: 0 })
    const rows = (): readonly GroupRow[] =>
      Object.entries(badges).map(([name, badge]) => ({
        name,
        badge,
        visibility: 'conditional',
        available: badge === 'available',
        ...(badge === 'unavailable' && { reason: `gone at ${id}` }),
        tools: [],
      }))
    let changed: (changes: readonly WatchedGroupChange[]) => void = () => {}
    const watch = { subscribe: (listener: typeof changed) => ((changed = listener), () => {}) }
    const groups = new FleetGroups({ self, state, replicas, rows, watch, clock, onFault: assert.ifError, everyMs: 1 })
    groups.tell()
    return {
      groups,
      shown: async () => {
        await groups.refresh()
        return groups.withOthers(rows())
      },
      set(name: string, badge: GroupBadge) {
        badges[name] = badge
        changed([])
      },
    }
  }
  return { state, start, all }
}

describe('FleetGroups', () => {
  it('names the replicas where a group is in another state, and its own', async () => {
    const { start } = setup()
    const a = start('a', { web: 'available', files: 'locked' })
    const b = start('b', { web: 'unavailable', files: 'locked' })
    assert.deepEqual(
      (await a.shown()).map(({ replica, elsewhere }) => [replica, elsewhere]),
      [
        ['a', [{ replica: 'b', badge: 'unavailable', reason: 'gone at b' }]],
        ['a', undefined],
      ],
    )
    assert.deepEqual((await b.shown())[0]?.elsewhere, [{ replica: 'a', badge: 'available' }])
  })

  it('reports each change elsewhere once, while there are listeners', async () => {
    const { start } = setup()
    const a = start('a', { web: 'available', files: 'available' })
    const b = start('b', { web: 'available', files: 'available' })
    await a.shown()
    const heard: string[] = []
    const next = () => new Promise<void>((resolve) => (wake = resolve))
    let wake = () => {}
    const leave = a.groups.subscribe((names) => {
      heard.push(names.join())
      wake()
    })
    for (const badge of ['unavailable', 'available'] as const) {
      const told = next()
      b.set('web', badge)
      await told
    }
    assert.deepEqual(heard, ['web', 'web'])
    leave()
  })

  it('names no replica that is lost or has left', async () => {
    const { start, all, state } = setup()
    const a = start('a', { web: 'available' })
    const b = start('b', { web: 'unavailable' })
    assert.equal((await a.shown())[0]?.elsewhere?.length, 1)
    all.set('b', { ...(all.get('b') as ReplicaRow), isLive: false })
    assert.equal((await a.shown())[0]?.elsewhere, undefined)
    assert.equal((await state.list('gateway/groups/')).length, 2)
    await b.groups.close()
    assert.equal((await state.list('gateway/groups/')).length, 1)
  })

  it('reads nothing of what another version or a stranger has written there', async () => {
    const { start, state, all } = setup()
    const a = start('a', { web: 'available' })
    all.set('x', { ...(all.get('a') as ReplicaRow), id: 'x', incarnation: 'x' })
    for (const value of [1, [1], [['web', 2]], [['web', { badge: 'open' }]], [[1, { badge: 'unavailable' }]]]) {
      await state.set('gateway/groups/x', value)
      assert.equal((await a.shown())[0]?.elsewhere, undefined)
    }
    await state.set('gateway/groups/x', [['web', { badge: 'unavailable', reason: 7 }]])
    assert.deepEqual((await a.shown())[0]?.elsewhere, [{ replica: 'x', badge: 'unavailable' }])
  })
})
