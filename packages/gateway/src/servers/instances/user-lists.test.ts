import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type Owner, ownerOf } from '../../model/owner.ts'
import { NO_ITEMS, type Upstream, type UpstreamItems, type UpstreamState } from '../../model/upstream.ts'
import { UserLists } from './user-lists.ts'

const owner = (user: string) => ownerOf({ user }) as Owner
const toItems = (name: string): UpstreamItems => ({ ...NO_ITEMS, tools: [{ name, inputSchema: { type: 'object' } }] })

/** An instance whose states the test sets. */
function instance() {
  let state: UpstreamState = { status: 'starting', since: 0, restarts: 0, rejected: [] }
  let items = NO_ITEMS
  const listeners = new Set<() => void>()
  const upstream = {
    name: 'mail',
    get state() {
      return state
    },
    get items() {
      return items
    },
    subscribe(listener: () => void) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  } as unknown as Upstream
  const set = (status: UpstreamState['status'], now: UpstreamItems = items) => {
    state = { ...state, status }
    items = now
    for (const listener of listeners) listener()
  }
  return { upstream, set, listeners }
}

describe('UserLists', () => {
  const world = (max = 8) => {
    const lists = new UserLists(max, (error) => assert.fail(String(error)))
    const changed: string[] = []
    lists.subscribe(({ owner: { name } }) => changed.push(name))
    return { lists, changed }
  }

  it('know a list when its instance is ready, and keep it while the instance is down or starts again', () => {
    const { lists, changed } = world()
    const first = instance()
    lists.follow(owner('vera'), first.upstream)
    first.set('starting', toItems('half'))
    assert.deepEqual([lists.of(owner('vera')), lists.all, changed], [undefined, [], []])
    first.set('ready', toItems('send'))
    first.set('down', NO_ITEMS)
    const list = lists.of(owner('vera'))
    assert.deepEqual([list?.items.tools[0]?.name, changed], ['send', ['vera']])
    const second = instance()
    lists.follow(owner('vera'), second.upstream)
    second.set('starting', NO_ITEMS)
    assert.equal(list?.items.tools[0]?.name, 'send')
    second.set('ready', toItems('read'))
    assert.equal(lists.of(owner('vera')), list)
    assert.deepEqual([list?.items.tools[0]?.name, changed, first.listeners.size], ['read', ['vera', 'vera'], 0])
    assert.equal(lists.of(owner('otto')), undefined)
  })

  it('announce no state that leaves the list as it is', () => {
    const { lists, changed } = world()
    const { upstream, set } = instance()
    lists.follow(owner('vera'), upstream)
    set('ready', toItems('send'))
    set('down')
    set('ready')
    assert.deepEqual(changed, ['vera'])
  })

  it('are those of a bounded number of users: the one whose instance started longest ago is forgotten', () => {
    const { lists, changed } = world(2)
    const instances = ['vera', 'otto', 'vera', 'zoe'].map((user) => {
      const { upstream, set } = instance()
      lists.follow(owner(user), upstream)
      set('ready', toItems(user))
      return set
    })
    assert.deepEqual(
      lists.all.map(({ owner: { name } }) => name),
      ['vera', 'zoe'],
    )
    // The one that is gone is announced, and no longer heard.
    assert.deepEqual(changed, ['vera', 'otto', 'vera', 'otto', 'zoe'])
    instances[1]?.('ready', toItems('late'))
    assert.deepEqual([lists.of(owner('otto')), changed.length], [undefined, 5])
  })
})
