import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { serveScripted } from '../testing/scripted-api.ts'

describe('toolgate audit rotate', () => {
  let closed: string | null = 'audit.jsonl.000000000001-000000000009'
  const run = serveScripted(({ method, url }) =>
    method === 'POST' && url === '/api/audit/rotate' ? { body: { closed } } : { status: 404, body: {} },
  )

  it('prints the name of the closed file', async () => {
    closed = 'audit.jsonl.000000000001-000000000009'
    assert.deepEqual((await run('audit', 'rotate')).out, `${closed}\n`)
    assert.deepEqual(JSON.parse((await run('audit', 'rotate', '--json')).out), { closed })
  })

  it('ends with 1 if there was nothing to close', async () => {
    closed = null
    const { code, err } = await run('audit', 'rotate')
    assert.equal(code, 1)
    assert.match(err, /only JSON lines with records are rotated/)
  })
})
