import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { serveScripted } from '../testing/scripted-api.ts'

const ROW = {
  rule: 'pay:*',
  limit: '500/86400',
  holder: { tenant: 'acme', user: 've\u001bra' },
  max: 500,
  used: 450,
  remaining: 50,
  until: 0,
}

describe('toolgate limits', () => {
  let limits: readonly object[] = [ROW]
  const run = serveScripted(({ url }) => ({
    body: url === '/api/limits?limit=5' || url === '/api/limits' ? { limits } : {},
  }))

  it('prints what is left, whose it is, and when some is free again', async () => {
    const { code, out } = await run('limits', '--limit', '5')
    assert.equal(code, 0)
    for (const text of ['pay:*', 'tenant acme, user ve', '450', '500', '50', '1970-01-01T00:00:00.000Z'])
      assert.ok(out.includes(text), out)
    assert.ok(!out.includes('\u001b'))
    assert.deepEqual(JSON.parse((await run('limits', '--json')).out), { limits: [ROW] })
  })

  it('prints amounts in the unit of their limit', async () => {
    limits = [{ ...ROW, limit: '5.00 EUR in 24 hours', unit: { name: 'EUR', places: 2 } }]
    const { out } = await run('limits')
    for (const text of ['4.50 EUR', '5.00 EUR', '0.50 EUR']) assert.ok(out.includes(text), out)
  })

  it('says that there are none', async () => {
    limits = []
    assert.match((await run('limits')).out, /No call has asked for a budget yet/)
  })
})
