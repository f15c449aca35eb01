import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Caller, createGate, defineCaller, defineTool, type Tool } from '@toolgate/core'
import { memoryAvailability } from '@toolgate/core/groups'
import { definePrompt, defineTemplate } from '@toolgate/core/toolset'
import { ItemLists } from './item-lists.ts'
import { ListWatch } from './list-watch.ts'
import { ToolLists } from './tool-lists.ts'

const VERA = defineCaller({ user: 'vera' })
const OLGA = defineCaller({ user: 'olga', roles: ['admin'] })

describe('ListWatch', () => {
  it('notifies a caller of changes to its own list, and not of changes to the lists of others', async (t) => {
    const { gate, hear, heard } = setup(t)
    await hear(VERA)
    await hear(OLGA)
    gate.setPolicy({ deny: [{ match: 'web:open', when: "'admin' in caller.roles" }] })
    await until(() => heard('olga') === 1)
    await sleep(60)
    assert.equal(heard('vera'), 0)
  })

  it('notifies of a group that becomes unavailable', async (t) => {
    const { availability, hear, heard } = setup(t)
    await hear(VERA)
    availability.set('web', { available: false })
    await until(() => heard('vera') === 1)
  })

  it('notifies the session that has opened a group, and no other session of the same user', async (t) => {
    const { gate, watch, hear, heard } = setup(t)
    const [one, other] = [defineCaller({ ...VERA, session: 'one' }), defineCaller({ ...VERA, session: 'other' })]
    await hear(one)
    await hear(other)
    gate.locks.request(one, 'git')
    watch.wake()
    await until(() => heard('one') === 1)
    await sleep(60)
    assert.equal(heard('other'), 0)
  })

  it('watches each list of a client by itself', async (t) => {
    const { sources, watch } = setup(t)
    const heard: string[] = []
    for (const list of ['tools', 'resources', 'prompts'] as const) await watch.watch(VERA, () => heard.push(list), list)
    const prompt = definePrompt({ namespace: 'git', name: 'commit' })
    sources.set([tool('git', 'push'), prompt])
    await until(() => heard.length > 0)
    await sleep(60)
    assert.deepEqual(heard, ['prompts'])
    sources.set([tool('git', 'push'), prompt, defineTemplate({ namespace: 'git', uriTemplate: 'git:{ref}' })])
    await until(() => heard.length > 1)
    assert.deepEqual(heard, ['prompts', 'resources'])
  })

  it('does not notify a caller without a session of locked groups, which are not in its list', async (t) => {
    const { sources, hear, heard } = setup(t)
    await hear(VERA)
    sources.set([tool('git', 'push', 'Another text.')])
    await sleep(100)
    assert.equal(heard('vera'), 0)
    sources.set([tool('git', 'push'), tool('new', 'one')])
    await until(() => heard('vera') === 1)
  })

  it('keeps nothing and does nothing once all watchers have left', async (t) => {
    const { gate, watch, hear, heard, views } = setup(t)
    const leave = [await hear(VERA), await hear(VERA), await hear(OLGA)]
    assert.equal(watch.size, 3)
    for (const one of leave) one()
    assert.equal(watch.size, 0)
    const asked = views()
    gate.setPolicy({ deny: ['*'] })
    await sleep(80)
    assert.deepEqual([heard('vera'), views()], [0, asked])
  })
})

function tool(namespace: string, name: string, description = '') {
  return defineTool({ namespace, name, description, execute: () => 1 })
}

function setup(t: TestContext) {
  const groups = {
    web: { tools: ['web:*'], visibility: 'conditional' },
    git: { tools: ['git:*'], unlock: 'request' },
  } as const
  const availability = memoryAvailability({ web: { available: true } })
  const listeners = new Set<() => void>()
  let offered: readonly Tool[] = [tool('git', 'push')]
  const source = {
    name: 's',
    tools: () => offered,
    subscribe: (listener: () => void) => (listeners.add(listener), () => void listeners.delete(listener)),
  }
  const policy = { allow: ['*', 'resource:*:*', 'prompt:*:*'] }
  const gate = createGate({ tools: [tool('web', 'open')], sources: [source], groups, availability, policy })
  const lists = new ToolLists(gate)
  let asked = 0
  const watch = new ListWatch({
    gate,
    openView: (caller) => (asked++, gate.view(caller)),
    availability,
    lists,
    items: new ItemLists(lists, { isOwned: () => true }),
    onFault: assert.ifError,
    everyMs: 20,
  })
  t.after(async () => {
    watch.close()
    await gate.close()
  })
  const counts = new Map<string, number>()
  return {
    gate,
    watch,
    availability,
    views: () => asked,
    sources: {
      set(tools: typeof offered) {
        offered = tools
        for (const listener of listeners) listener()
      },
    },
    heard: (who: string) => counts.get(who) ?? 0,
    hear(caller: Caller) {
      const who = caller.session ?? (caller.user as string)
      return watch.watch(caller, () => counts.set(who, (counts.get(who) ?? 0) + 1))
    },
  }
}

async function until(check: () => boolean): Promise<void> {
  for (let i = 0; i < 1000 && !check(); i++) await sleep(5)
  assert.ok(check(), check.toString())
}
