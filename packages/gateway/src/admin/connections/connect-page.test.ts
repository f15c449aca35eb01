import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { manualClock } from '@toolgate/testing'
import type { Credential } from '../../auth/credential.ts'
import { createOriginRules } from '../../auth/origin.ts'
import { type AccessRules, createSessions } from '../http/access.ts'
import { createConnectPage } from './connect-page.ts'

const ORIGIN = 'http://127.0.0.1:8787'

function setup(lifeMs: number) {
  const clock = manualClock()
  const expiresAtMs = clock.wallMs() + lifeMs
  const issuer = 'https://login.example.com'
  const found: Credential = { id: 'a', for: 'mcp', caller: { user: 'corp/vera' }, issuer, expiresAtMs }
  const access: AccessRules = {
    authenticator: {
      authenticate: async () => found,
      current: () => found,
      renewed: () => found,
      challenge: () => 'Bearer',
      insufficientScope: () => 'Bearer',
    },
    origins: createOriginRules({ host: '127.0.0.1', port: 8787 }),
    sessions: createSessions({ clock }),
    cookieName: 'session',
  }
  const connections = {
    rowsOf: () => [{ server: 'mail' }],
    hostOf: () => 'mail.example.com',
    publicUrl: ORIGIN,
    clientDocument: () => undefined,
    begin: () => assert.fail(),
    finish: () => assert.fail(),
    disconnect: () => assert.fail(),
  }
  const page = createConnectPage({ access, people: createSessions({ clock, ttlMs: 3_600_000 }), connections })
  const headers = { host: '127.0.0.1:8787', origin: ORIGIN, 'content-type': 'application/x-www-form-urlencoded' }
  return {
    clock,
    logIn: async () => {
      const answer = await page.fetch(new Request(`${ORIGIN}/connect/mail`, { method: 'POST', headers, body: 'key=a' }))
      return (answer.headers.get('set-cookie') ?? '').replace(/;.*/, '')
    },
    open: async (cookie: string) =>
      (await page.fetch(new Request(`${ORIGIN}/connect/mail`, { headers: { host: headers.host, cookie } }))).status,
  }
}

describe('the page of a connection', () => {
  it('knows a person no longer than the credential that they showed holds', async () => {
    const { clock, logIn, open } = setup(60_000)
    const cookie = await logIn()
    clock.advance(59_999)
    assert.equal(await open(cookie), 200)
    clock.advance(1)
    assert.equal(await open(cookie), 401)
  })
})
