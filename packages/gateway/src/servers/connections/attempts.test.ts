import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { memoryState } from '@toolgate/core/stores'
import { manualClock } from '@toolgate/testing'
import { SecretSealer } from '../../util/sealer.ts'
import { ATTEMPT_MS, type ConnectAttempt, type AttemptAnswer, Attempts } from './attempts.ts'

const VERA = { user: 'vera', tenant: 'acme' }
const at = (state: string, more: Partial<AttemptAnswer> = {}) => ({
  state,
  callback: '/connect/~callback/mail',
  ...more,
})
const ATTEMPT: ConnectAttempt = {
  server: 'mail',
  ...VERA,
  of: 'x',
  issuer: 'https://login.example.com',
  client: { id: 'c', secret: 'secret-of-the-client' },
  resource: 'https://mail.example.com/mcp',
  verifier: 'verifier-of-the-attempt',
  callback: '/connect/~callback/mail',
  namesIssuer: false,
}

function make() {
  const clock = manualClock()
  const state = memoryState({ clock })
  return { clock, state, attempts: new Attempts({ state, clock, sealer: new SecretSealer({ state, clock }) }) }
}

describe('Attempts', () => {
  it('return what was begun, once', async () => {
    const { attempts } = make()
    const { state, secret } = await attempts.begin(ATTEMPT)
    assert.deepEqual(await attempts.finish(at(state), secret, VERA), ATTEMPT)
    await assert.rejects(attempts.finish(at(state), secret, VERA), /this attempt is over/)
  })

  it('are for one browser, user and tenant, and a wrong answer does not use them up', async () => {
    const { attempts } = make()
    const { state, secret } = await attempts.begin(ATTEMPT)
    await assert.rejects(attempts.finish(at(state), '', VERA))
    await assert.rejects(attempts.finish(at(state), `${secret.slice(1)}x`, VERA))
    await assert.rejects(attempts.finish(at(state), secret, { user: 'omar', tenant: 'acme' }))
    await assert.rejects(attempts.finish(at(state), secret, { user: 'vera' }))
    await assert.rejects(attempts.finish(at(''), secret, VERA))
    await assert.rejects(attempts.finish(at(`${state}/../x`), secret, VERA))
    assert.deepEqual(await attempts.finish(at(state), secret, VERA), ATTEMPT)
  })

  it('are for the answer of their own authorization server: by its place, and by its `iss`', async () => {
    const { attempts } = make()
    const { issuer } = ATTEMPT
    const { state, secret } = await attempts.begin(ATTEMPT)
    for (const callback of ['/connect/~callback', '/connect/~callback/other', '/connect/~callback/mail/'])
      await assert.rejects(attempts.finish(at(state, { callback, iss: issuer }), secret, VERA))
    await assert.rejects(attempts.finish(at(state, { iss: 'https://other.example.com' }), secret, VERA))
    assert.deepEqual(await attempts.finish(at(state), secret, VERA), ATTEMPT)
    const naming = await attempts.begin({ ...ATTEMPT, namesIssuer: true })
    for (const iss of [undefined, '', 'https://other.example.com'])
      await assert.rejects(attempts.finish(at(naming.state, { iss }), naming.secret, VERA))
    await attempts.finish(at(naming.state, { iss: issuer }), naming.secret, VERA)
  })

  it('end after a time, and when the user begins again', async () => {
    const { attempts, clock, state: store } = make()
    const first = await attempts.begin(ATTEMPT)
    clock.advance(ATTEMPT_MS)
    await assert.rejects(attempts.finish(at(first.state), first.secret, VERA))
    const second = await attempts.begin(ATTEMPT)
    const other = await attempts.begin({ ...ATTEMPT, user: 'omar' })
    const third = await attempts.begin(ATTEMPT)
    await assert.rejects(attempts.finish(at(second.state), second.secret, VERA))
    assert.equal((await store.list('gateway/connection-attempts/')).length, 2)
    await attempts.finish(at(other.state), other.secret, { user: 'omar', tenant: 'acme' })
    await attempts.finish(at(third.state), third.secret, VERA)
  })

  it('keep no secret in clear', async () => {
    const { attempts, state } = make()
    const begun = await attempts.begin(ATTEMPT)
    const text = JSON.stringify(await state.list('gateway/connection-attempts/'))
    for (const secret of ['verifier-of', 'secret-of', begun.secret, begun.state.split('.')[1] ?? ''])
      assert.ok(!text.includes(secret), secret)
  })
})
