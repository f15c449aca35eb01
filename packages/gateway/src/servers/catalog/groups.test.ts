import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createGate, defineTool } from '@toolgate/core'
import { createAvailability } from '@toolgate/core/groups'
import { redactor } from '@toolgate/values/redact'
import type { GroupConfig } from '../../config/config.ts'
import type { UpstreamStatus } from '../../model/upstream.ts'
import { serverGroupName, toGroups } from './groups.ts'

const REPORTS: GroupConfig = {
  name: 'reports',
  tools: ['web:open'],
  visibility: 'conditional',
  dependsOn: [],
  availableWhen: [{ server: 'files' }, { env: 'PATH' }],
  ttlMs: 500,
}

function server(name: string, status: UpstreamStatus = 'ready') {
  const listeners = new Set<() => void>()
  const one = {
    name,
    state: { status, since: 1, restarts: 0, rejected: [] } as {
      status: UpstreamStatus
      reason?: string
      since: number
      restarts: number
      rejected: []
    },
    subscribe(listener: () => void) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    turn(next: UpstreamStatus, reason?: string) {
      one.state = { ...one.state, status: next, ...(reason === undefined ? {} : { reason }) }
      for (const listener of listeners) listener()
    },
  }
  return one
}

function open() {
  const servers = [server('files'), server('web')] as const
  const reaper = { watch: () => {}, release: () => {} }
  const groups = toGroups([REPORTS], { servers, redactor, reaper })
  const availability = createAvailability(groups)
  void availability.start()
  const gate = createGate({
    tools: ['files', 'web'].map((namespace) => defineTool({ namespace, name: 'open', execute: () => 1 })),
    groups,
    availability,
  })
  return { files: servers[0], groups, availability, gate }
}

describe('toGroups', () => {
  it('returns the configured groups with their probes, and a conditional one for all tools of each server', async () => {
    const { groups, availability, gate } = open()
    assert.deepEqual([...groups.keys()], ['reports', 'server:files', 'server:web'])
    assert.deepEqual(groups.get('server:files')?.tools, ['files:*'])
    assert.equal(groups.get('server:files')?.visibility, 'conditional')
    assert.equal(groups.get('reports')?.ttlMs, 500)
    assert.equal(groups.get('reports')?.availableWhen?.length, 2)
    assert.deepEqual((await gate.view({})).ids, ['files:open', 'web:open'])
    availability.close()
    await gate.close()
  })

  it('hides the tools of a down server and those that need it at once, and shows callers nothing of its output', async () => {
    const { files, availability, gate } = open()
    const before = await gate.view({})
    files.turn('down', 'exited (Error: root:secret@db)')
    const view = await gate.view({})
    assert.deepEqual(view.ids, [])
    assert.equal(before.narrow({}).size, 0)
    const text = 'is unavailable: the server files is down. It is restarted automatically; try again later.'
    assert.equal(
      view.explain('files:open').reasons[0]?.text,
      'the server files is down: exited (Error: root:secret@db)',
    )
    assert.equal((await view.call({ tool: 'files:open' })).text, `files:open ${text}`)
    assert.equal((await view.call({ tool: 'web:open' })).text, `web:open ${text}`)
    files.turn('ready')
    assert.deepEqual((await gate.view({})).ids, ['files:open', 'web:open'])
    availability.close()
    await gate.close()
  })

  it('follows the status of a server', () => {
    const { files, availability } = open()
    for (const [status, words] of [
      ['starting', 'starting'],
      ['stopped', 'down'],
    ] as const) {
      files.turn(status)
      assert.equal(availability.get('server:files')?.reason, `the server files is ${words}`)
    }
    availability.close()
  })
})

describe('serverGroupName', () => {
  it('returns a name that no configured group can have: group names contain no colon', () => {
    assert.equal(serverGroupName('files'), 'server:files')
  })
})
