import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import path from 'node:path'
import { describe, it } from 'node:test'
import { signedHeaders } from '../packages/gateway/src/admin/notifications/sign.ts'

const PAGE = readFileSync(path.resolve(import.meta.dirname, '../docs/guide/notifications.md'), 'utf8')
const CODE = /```ts\n([\s\S]*?)```/.exec(PAGE)?.[1] ?? ''

/** The example of the guide, as a reader pastes it. */
const { isGenuine } = (await import(`data:text/javascript,${encodeURIComponent(stripTypeScriptTypes(CODE))}`)) as {
  isGenuine(headers: Headers, body: string, secret: string, nowMs?: number): boolean
}

const BODY = '{"test": 2432232314}'
const ID = 'msg_p5jXN8AQM9LWM0D4loKWxJek'
const AT_MS = 1_614_265_330_000

describe('the check of a signature in docs/guide/notifications.md', () => {
  it('agrees with the example of Standard Webhooks', () => {
    const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
    const headers = signedHeaders({ id: ID, atMs: AT_MS, body: BODY }, secret)
    assert.deepEqual(headers, {
      'webhook-id': ID,
      'webhook-timestamp': '1614265330',
      'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    })
    assert.ok(isGenuine(new Headers(headers), BODY, secret, AT_MS))
  })

  it('takes a plain secret, and one of several signatures', () => {
    const headers = new Headers(signedHeaders({ id: ID, atMs: AT_MS, body: BODY }, 'a plain secret text'))
    headers.set('webhook-signature', `v1,${'A'.repeat(43)}= ${headers.get('webhook-signature')}`)
    assert.ok(isGenuine(headers, BODY, 'a plain secret text', AT_MS))
  })

  it('refuses another body, another secret, an old message and one without a signature', () => {
    const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
    const headers = new Headers(signedHeaders({ id: ID, atMs: AT_MS, body: BODY }, secret))
    assert.ok(!isGenuine(headers, `${BODY} `, secret, AT_MS))
    assert.ok(!isGenuine(headers, BODY, 'another secret of mine', AT_MS))
    assert.ok(!isGenuine(headers, BODY, secret, AT_MS + 300_001))
    headers.delete('webhook-signature')
    assert.ok(!isGenuine(headers, BODY, secret, AT_MS))
    assert.ok(!isGenuine(new Headers(), BODY, secret, AT_MS))
  })
})
