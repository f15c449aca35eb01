import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate, defineTool, type GroupState } from '@toolgate/core'
import type { GroupConfig, ServerConfig } from '../config/config.ts'
import { serverGroupName, toGroups, toGroupState } from './server-groups.ts'

const SERVERS = [{ name: 'files' }, { name: 'web' }] as unknown as readonly ServerConfig[]
const BROWSER: GroupConfig = {
  name: 'browser',
  tools: ['web:open'],
  visibility: 'conditional',
  dependsOn: [],
  availableWhen: [{ tcp: { host: '127.0.0.1', port: 4444 } }],
  suggestion: 'Start it.',
}

describe('toGroups', () => {
  it('gives the configured groups, and a conditional one for all tools of each server', () => {
    const groups = toGroups([BROWSER], SERVERS)
    assert.deepEqual([...groups.keys()], ['browser', 'server:files', 'server:web'])
    assert.deepEqual(groups.get('server:files'), { tools: ['files:*'], visibility: 'conditional' })
    assert.equal('availableWhen' in (groups.get('browser') ?? {}), false)
  })

  it('hides the tools of a server that is down, and no others, and tells callers nothing that it wrote', async () => {
    const state = new Map<string, GroupState>([
      ['browser', { available: true }],
      [
        'server:files',
        toGroupState('files', {
          status: 'down',
          reason: 'exited (Error: root:secret@db)',
          since: 1,
          restarts: 0,
          rejected: [],
        }),
      ],
      ['server:web', toGroupState('web', { status: 'ready', since: 1, restarts: 0, rejected: [] })],
    ])
    const gate = createGate({
      tools: ['files', 'web'].map((namespace) => defineTool({ namespace, name: 'open', execute: () => 1 })),
      groups: toGroups([BROWSER], SERVERS),
      availability: { revision: 1, get: (group) => state.get(group), subscribe: () => () => {} },
    })
    const view = await gate.view({})
    assert.deepEqual(view.ids, ['web:open'])
    assert.equal(
      view.explain('files:open').reasons[0]?.text,
      'the server files is down: exited (Error: root:secret@db)',
    )
    assert.equal(
      (await view.call({ tool: 'files:open' })).text,
      'files:open is unavailable: the server files is down. It is restarted by itself; try again in a while.',
    )
  })
})

describe('serverGroupName', () => {
  it('gives a name that no configured group can have: group names hold no colon', () => {
    assert.equal(serverGroupName('files'), 'server:files')
  })
})

describe('toGroupState', () => {
  const state = { since: 5, restarts: 0, rejected: [] }

  it('is available exactly when the server is ready', () => {
    assert.deepEqual(toGroupState('files', { ...state, status: 'ready' }), { available: true, since: 5 })
    for (const status of ['starting', 'down', 'stopped'] as const)
      assert.equal(toGroupState('files', { ...state, status }).available, false)
  })

  it('says why it is not, and what becomes of it', () => {
    const down = toGroupState('files', { ...state, status: 'down', reason: 'exited with code 1' })
    assert.equal(down.reason, 'the server files is down')
    assert.equal(down.detail, 'exited with code 1')
    assert.equal(down.suggestion, 'It is restarted by itself; try again in a while.')
    assert.equal(down.since, 5)
    assert.equal(toGroupState('files', { ...state, status: 'starting' }).reason, 'the server files is starting')
    assert.equal(toGroupState('files', { ...state, status: 'stopped' }).reason, 'the server files is down')
  })
})
