import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { serveScripted } from '../testing/scripted-api.ts'

const OPS = { name: 'ops', format: 'slack', input: false, waiting: 2 }

describe('toolgate notify', () => {
  let receivers: readonly object[] = [OPS]
  const run = serveScripted(({ url }) => ({ body: url === '/api/notifications' ? { receivers } : {} }))

  it('prints the receivers', async () => {
    const { code, out } = await run('notify')
    assert.equal(code, 0)
    assert.match(out, /ops +slack +all +2/)
  })

  it('prints the problem of a receiver, and exits with 1', async () => {
    receivers = [{ ...OPS, for: ['acme'], failing: { since: '2026-11-28T14:00:00.000Z', why: 'it answered 503' } }]
    const { code, out } = await run('notify')
    assert.equal(code, 1)
    assert.match(out, /acme +2 +since 2026-11-28T14:00:00\.000Z: it answered 503/)
  })

  it('says how to name the first one', async () => {
    receivers = []
    assert.match((await run('notify', 'list')).out, /Add "approvals: \{ notify/)
  })
})

describe('toolgate notify test', () => {
  const isTaken = true
  const taken = [{ name: 'ops', format: 'slack', isTaken, text: 'it answered 200: ok' }]
  const lost = [{ name: 'ops', format: 'slack', isTaken: false, text: 'it answered 404: no_service' }]
  let receivers: readonly object[] = taken
  const run = serveScripted(({ url }) => ({ body: url === '/api/notifications/test' ? { receivers } : {} }))

  it('prints what the receiver answered', async () => {
    const { code, out } = await run('notify', 'test', 'ops')
    assert.deepEqual([code, out], [0, 'ops: the message was taken; it answered 200: ok\n'])
  })

  it('exits with 1 if it was not taken', async () => {
    receivers = lost
    const { code, out } = await run('notify', 'test')
    assert.deepEqual([code, out], [1, 'ops: not taken; it answered 404: no_service\n'])
  })
})
