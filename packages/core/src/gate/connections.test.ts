import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Caller } from '../ports/caller.ts'
import type { ConnectionSource, MissingConnection } from '../ports/ports.ts'
import { defineTool } from '../tools/tool.ts'
import { createEmitter } from '@toolgate/values'
import { createGate } from './gate.ts'

const tool = (id: string) => {
  const [namespace, name] = id.split(':') as [string, string]
  return defineTool({ namespace, name, execute: () => `ran ${id}` })
}
const MISSING: MissingConnection = {
  namespace: 'mail',
  text: 'the user has not connected mail',
  message: 'it needs your account',
  suggestion: 'Connect it at https://tools.example/connect/mail.',
}

function make() {
  const connected = new Set<string>()
  const changes = createEmitter()
  const connections: ConnectionSource = {
    missing: ({ user = '' }: Caller) => (connected.has(user) ? [] : [MISSING]),
    subscribe: changes.subscribe,
  }
  const gate = createGate({ tools: [tool('mail:send'), tool('files:read')], connections })
  return { gate, connected, change: () => changes.emit() }
}

describe('the connections of a gate', () => {
  it('hold the tools of a server back until its user has connected it', async () => {
    const { gate, connected, change } = make()
    const view = await gate.view({ user: 'vera' })
    assert.deepEqual(view.ids, ['files:read'])
    const before = await view.call({ tool: 'mail:send' })
    assert.equal(before.status, 'refused')
    assert.equal(
      before.text,
      'mail:send is unavailable: it needs your account. Connect it at https://tools.example/connect/mail.',
    )
    assert.equal(view.explain('mail:send').outcome, 'wait')
    assert.equal(view.explain('mail:send').reasons[0]?.code, 'not_connected')
    connected.add('vera')
    change()
    const after = await gate.view({ user: 'vera' })
    assert.equal((await after.call({ tool: 'mail:send' })).status, 'done')
  })

  it('of one user open nothing for another', async () => {
    const { gate, connected, change } = make()
    connected.add('vera')
    change()
    const sam = await gate.view({ user: 'sam' })
    assert.equal((await sam.call({ tool: 'mail:send' })).status, 'refused')
  })

  it('are read again after each change, also in a view that is open, and announced', async () => {
    const { gate, connected, change } = make()
    connected.add('vera')
    const events: string[] = []
    gate.subscribe(({ event }) => events.push(event))
    const view = await gate.view({ user: 'vera' })
    assert.equal((await view.call({ tool: 'mail:send' })).status, 'done')
    connected.delete('vera')
    change()
    assert.deepEqual(events, ['connections-changed'])
    assert.equal((await view.call({ tool: 'mail:send' })).status, 'refused')
  })
})
