import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { memoryAudit } from '@toolgate/core'
import type { GroupState } from '@toolgate/core/groups'
import { redactor } from '@toolgate/values/redact'
import type { UpstreamState } from '../../model/upstream.ts'
import type { WatchedGroupChange } from './group-watch.ts'
import { recordStateChanges } from './state-changes.ts'

const ON: GroupState = { available: true }
const OFF: GroupState = { available: false, reason: 'nothing listens on 127.0.0.1:4444' }
const SECRET = 'ghp_abcdefghijklmnopqrstuvwxyz0123456789'

describe('recordStateChanges', () => {
  it('records that a group comes and goes, and why', () => {
    const { tell, records } = setup()
    tell({ name: 'web', before: ON, now: OFF })
    tell({ name: 'web', before: OFF, now: ON })
    assert.deepEqual(records(), [
      ['group_changed', 'unavailable', 'web: nothing listens on 127.0.0.1:4444'],
      ['group_changed', 'available', 'web'],
    ])
  })

  it('records nothing of a group that is there at the start, and that it is not', () => {
    const { tell, records } = setup()
    tell({ name: 'web', before: { available: false, unknown: true }, now: ON })
    tell({ name: 'git', before: { available: false, unknown: true }, now: OFF })
    assert.deepEqual(
      records().map(([, reason]) => reason),
      ['unavailable'],
    )
  })

  it('records no change of the words alone', () => {
    const { tell, records } = setup()
    tell({ name: 'web', before: OFF, now: { ...OFF, reason: 'it did not answer' } })
    assert.deepEqual(records(), [])
  })

  it('records the status of a server, with its output redacted', () => {
    const { tell, records, server } = setup()
    tell({ name: 'server:files', before: OFF, now: ON })
    server.state = { ...server.state, status: 'down', reason: `exited with code 1 (${SECRET})` }
    tell({ name: 'server:files', before: ON, now: OFF })
    assert.equal(records().length, 1)
    const [event, reason, detail] = records()[0] ?? []
    assert.deepEqual([event, reason], ['server_changed', 'down'])
    assert.match(detail ?? '', /^files: exited with code 1 /)
    assert.ok(!detail?.includes(SECRET))
  })

  it('reports an audit that fails, and continues', () => {
    const { tell, faults } = setup(() => {
      throw new Error('disk')
    })
    tell({ name: 'web', before: ON, now: OFF })
    tell({ name: 'web', before: OFF, now: ON })
    assert.equal(faults.length, 2)
  })
})

function setup(write?: () => never) {
  const audit = memoryAudit()
  const faults: unknown[] = []
  const server = { state: { status: 'ready', since: 1, restarts: 0, rejected: [] } as UpstreamState }
  let hear: (changes: readonly WatchedGroupChange[]) => void = () => {}
  recordStateChanges({
    watch: { subscribe: (listener) => ((hear = listener), () => {}) },
    serverOf: (group) => (group === 'server:files' ? { name: 'files', state: server.state } : undefined),
    audit: write ? { write } : audit,
    clock: { wallMs: () => 1 },
    redact: redactor,
    revisions: () => ({ policy_revision: 1, catalog_revision: 1 }),
    onFault: (error) => faults.push(error),
  })
  return {
    server,
    faults,
    tell: (change: WatchedGroupChange) => hear([change]),
    records: () => audit.records.map(({ event, reason, detail }) => [event, reason, detail] as const),
  }
}
