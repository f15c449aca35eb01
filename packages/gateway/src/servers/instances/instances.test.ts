import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { DEFAULT_INSTANCES, type HeldInstance, type InstanceLimits, Instances } from './instances.ts'
import { type Owner, ownerOf } from '../../model/owner.ts'
import type { Upstream } from '../../model/upstream.ts'

const owner = (user: string) => ownerOf({ user }) as Owner

/** Instances whose processes take until `end` to end. */
function world(limits: Partial<InstanceLimits>) {
  const instances = new Instances({ ...DEFAULT_INSTANCES, ...limits })
  const log: string[] = []
  const ends = new Map<string, () => void>()
  const take = (user: string, server = 'browser'): HeldInstance => {
    const held = instances.take(server, owner(user), () => slowToEnd(user, log, ends))
    assert.ok('release' in held)
    return held
  }
  return { instances, log, take, end: (user: string) => ends.get(user)?.() }
}

function slowToEnd(user: string, log: string[], ends: Map<string, () => void>): Upstream {
  return {
    name: 'browser',
    state: { status: 'ready', since: 0, restarts: 0, rejected: [] },
    items: { tools: [], resources: [], templates: [], prompts: [] },
    subscribe: () => () => {},
    restart: async () => {},
    start: async () => void log.push(`start ${user}`),
    call: async () => ({}),
    watch: async () => () => {},
    async close() {
      log.push(`stop ${user}`)
      await new Promise<void>((resolve) => ends.set(user, resolve))
      log.push(`ended ${user}`)
    },
  }
}

describe('Instances', () => {
  it('starts one only after the one that it replaces has ended, so that the bound holds', async () => {
    const { log, take, end } = world({ max: 1 })
    const vera = take('vera')
    await vera.started
    vera.release()
    const otto = take('otto')
    await turn()
    assert.deepEqual(log, ['start vera', 'stop vera'])
    end('vera')
    await otto.started
    assert.deepEqual(log, ['start vera', 'stop vera', 'ended vera', 'start otto'])
  })

  it('starts a user’s again only after their last one has ended, as both have one HOME', async () => {
    const { log, take, end } = world({ idleMs: 1 })
    const first = take('vera')
    await first.started
    first.release()
    while (log.length < 2) await turn()
    const second = take('vera')
    await turn()
    assert.deepEqual(log, ['start vera', 'stop vera'])
    end('vera')
    await second.started
    assert.deepEqual(log.slice(2), ['ended vera', 'start vera'])
  })

  it('does not end one that was released once and is in use again', async () => {
    const { log, take } = world({ idleMs: 5 })
    const first = take('vera')
    first.release()
    const second = take('vera')
    first.release()
    await new Promise((resolve) => setTimeout(resolve, 30))
    assert.ok(!log.includes('stop vera'))
    second.release()
    while (!log.includes('stop vera')) await turn()
  })
})
