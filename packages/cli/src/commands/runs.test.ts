import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { serveScripted } from '../testing/scripted-api.ts'

const RUN = {
  id: 'r-1',
  user: 'vera',
  tenant: 'acme',
  host: 'run\u001bner',
  kind: 'run',
  startedAt: 0,
  calls: 3,
  refused: 1,
  labels: ['private', 'untrusted'],
  expiresAt: 3_600_000,
  narrows: 'policy [web:*]',
}

describe('toolgate runs', () => {
  const asked: unknown[] = []
  const run = serveScripted(({ method, url }) => {
    asked.push(`${method} ${url}`)
    return { body: method === 'GET' ? { runs: [RUN], total: 3 } : { id: 'r-1' } }
  })

  it('lists them, and says how many more there are', async () => {
    const { code, out } = await run('runs', '--user', 'vera', '--limit', '1')
    assert.equal(code, 0)
    for (const text of [
      'r-1',
      'vera of acme',
      '1970-01-01T01:00:00.000Z',
      'policy [web:*]',
      'private untrusted',
      '2 older runs not shown',
    ])
      assert.ok(out.includes(text), out)
    assert.ok(!out.includes('\u001b'), 'no control characters')
    assert.deepEqual(asked.splice(0), ['GET /api/runs?user=vera&state=open&limit=1'])
  })

  it('lists those that have ended with --all', async () => {
    assert.equal((await run('runs', '--all', '--label', 'untrusted')).code, 0)
    assert.deepEqual(asked.splice(0), ['GET /api/runs?label=untrusted'])
  })

  it('revokes one', async () => {
    const { code, out } = await run('runs', 'revoke', 'r-1')
    assert.deepEqual([code, out], [0, 'revoked  r-1, and the runs below it\n'])
    assert.deepEqual(asked.splice(0), ['DELETE /api/runs/r-1'])
  })

  it('prints the answer for programs', async () => {
    assert.deepEqual(JSON.parse((await run('runs', 'list', '--json')).out), { runs: [RUN], total: 3 })
  })
})
