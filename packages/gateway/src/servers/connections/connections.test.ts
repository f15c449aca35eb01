import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { memoryLock, memoryState, type StateStore, systemClock } from '@toolgate/core/stores'
import type { ServerConfig } from '../../config/config.ts'
import { Connections } from './connections.ts'

const PLAIN = { name: 'files' } as ServerConfig
const MAIL = { name: 'mail', url: 'https://mail.example.com/mcp', oauth: {} } as ServerConfig

/** Connections over a store that counts how often it is followed. */
function open(servers: ServerConfig[]) {
  const state = memoryState()
  let followed = 0
  const follow = <Args extends unknown[], Answer>(method: (...args: Args) => Answer) => {
    return (...args: Args): Answer => {
      followed++
      return method.apply(state, args)
    }
  }
  const counting: StateStore = Object.create(state, {
    subscribe: { value: follow(state.subscribe) },
    list: { value: follow(state.list) },
  })
  const connections = new Connections({
    state: counting,
    lock: memoryLock({ clock: systemClock }),
    clock: systemClock,
    publicUrl: undefined,
    servers: () => servers,
    record: () => {},
    log: () => {},
    onFault: assert.ifError,
  })
  connections.start()
  return { connections, isFollowed: () => followed > 0 }
}

describe('Connections', () => {
  it('do not follow the store until a reload brings the first server that needs them', () => {
    const servers = [PLAIN]
    const { connections, isFollowed } = open(servers)
    connections.renew()
    assert.ok(!isFollowed())
    servers.push(MAIL)
    connections.renew()
    assert.ok(isFollowed())
    connections.close()
  })

  it('follow the store from the start if a server needs them', () => {
    const { connections, isFollowed } = open([MAIL])
    assert.ok(isFollowed())
    connections.close()
  })
})
