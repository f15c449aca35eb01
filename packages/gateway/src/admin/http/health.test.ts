import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createHealth, type HealthDeps } from './health.ts'
import type { ServerRow } from '../../model/rows.ts'

const WELL: HealthDeps = {
  servers: () => [],
  isLeaving: () => false,
  rooms: () => ({ body: {} }),
  nowMs: () => 0,
}

describe('createHealth', () => {
  it('is alive whatever the servers do', () => {
    assert.deepEqual(createHealth({ ...WELL, servers: () => [row('a', 'down')] }).healthz(), {
      status: 200,
      body: { status: 'ok' },
    })
  })

  it('is ready once every server has answered or failed its first start, and stays so', () => {
    let rows = [row('files', 'ready'), row('memory', 'starting')]
    const health = createHealth({ ...WELL, servers: () => rows })
    assert.deepEqual(health.readyz({ withServers: true }), {
      status: 503,
      body: {
        status: 'starting',
        servers: [
          { name: 'files', status: 'ready' },
          { name: 'memory', status: 'starting' },
        ],
      },
    })
    rows = [row('files', 'ready'), row('memory', 'down')]
    assert.equal(health.readyz().status, 200)
    rows = [row('files', 'starting'), row('memory', 'down')]
    assert.deepEqual([health.readyz().status, health.readyz().body.status], [200, 'ready'])
  })

  it('counts a second start as a first one that failed', () => {
    assert.equal(
      createHealth({ ...WELL, servers: () => [{ ...row('a', 'starting'), restarts: 1 }] }).readyz().status,
      200,
    )
  })

  it('names no servers to those who have not asked with a console key', () => {
    const health = createHealth({ ...WELL, servers: () => [row('secret-project', 'starting')] })
    assert.deepEqual(health.readyz(), { status: 503, body: { status: 'starting' } })
  })

  it('is not ready while the state or the audit takes no write, and again once they do', () => {
    let [isFull, checks, nowMs] = [true, 0, 0]
    const checkState = () => {
      checks++
      if (isFull) throw new Error('database or disk is full')
    }
    let audit: { readonly code: string; readonly message: string } | undefined
    const health = createHealth({
      ...WELL,
      checkState,
      nowMs: () => nowMs,
      rooms: () => (audit ? { isRefusing: true, body: { audit: { code: audit.code } } } : { body: {} }),
    })
    const message = 'database or disk is full'
    assert.deepEqual(health.readyz(), {
      status: 503,
      body: { status: 'refusing', state: { code: 'state_unavailable' } },
    })
    assert.deepEqual(health.readyz({ withServers: true }).body.state, { code: 'state_unavailable', message })
    assert.equal(checks, 1)
    isFull = false
    nowMs = 1000
    assert.deepEqual(health.readyz(), { status: 200, body: { status: 'ready' } })
    audit = { code: 'disk', message }
    assert.deepEqual(health.readyz(), { status: 503, body: { status: 'refusing', audit: { code: 'disk' } } })
  })

  it('shows which values a server waits for, by their place in the file', () => {
    const waitsFor = ['servers.a.env.TOKEN']
    const { body } = createHealth({
      ...WELL,
      servers: () => [{ ...row('a', 'down'), waitsFor }, row('b', 'ready')],
    }).readyz({ withServers: true })
    assert.deepEqual(body.servers, [
      { name: 'a', status: 'down', waitsFor },
      { name: 'b', status: 'ready' },
    ])
  })

  it('shows no reasons', () => {
    const secret = { ...row('a', 'down'), reason: '/home/vera/secret is not there' }
    assert.doesNotMatch(
      JSON.stringify(createHealth({ ...WELL, servers: () => [secret] }).readyz({ withServers: true })),
      /vera/,
    )
  })
})

function row(name: string, status: ServerRow['status']): ServerRow {
  return { name, status, since: 0, restarts: 0, toolCount: 0, rejected: [] }
}
