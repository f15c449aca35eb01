import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { standardFetch } from './standard-answer.ts'

const ask = async (body: unknown, status = 200, success: 200 | 201 = 200) => {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  const answer = await standardFetch(async () => new Response(text, { status }), success)('https://x.example.com')
  return { status: answer.status, body: await answer.text().then((read) => (read === '' ? '' : JSON.parse(read))) }
}

describe('standardFetch', () => {
  it('takes a token as servers write it: null members, numbers as text, scopes as a list, no type', async () => {
    const written = { access_token: 'a', refresh_token: null, id_token: '', expires_in: '3600', scope: ['r', 'w'] }
    assert.deepEqual(await ask(written, 201), {
      status: 200,
      body: { token_type: 'bearer', access_token: 'a', expires_in: 3600, scope: 'r w' },
    })
    assert.equal((await ask({ access_token: 'a', token_type: 'mac' })).body.token_type, 'mac')
    assert.equal((await ask({ access_token: 'a', expires_in: 'soon' })).body.expires_in, 'soon')
  })

  it('takes a registration with any status of 2xx, and a secret that never ends', async () => {
    assert.deepEqual(await ask({ client_id: 'c', client_secret: 's', scope: null }, 200, 201), {
      status: 201,
      body: { client_secret_expires_at: 0, client_id: 'c', client_secret: 's' },
    })
    assert.deepEqual((await ask({ client_id: 'c', client_secret: null }, 201, 201)).body, {
      client_id: 'c',
      client_secret_expires_at: 0,
    })
  })

  it('takes an error with a status of 2xx as an error, and leaves other answers', async () => {
    assert.deepEqual(await ask({ error: 'invalid_grant' }), { status: 400, body: { error: 'invalid_grant' } })
    assert.deepEqual(await ask({ error: 'invalid_grant' }, 401), { status: 401, body: { error: 'invalid_grant' } })
    assert.equal((await ask('', 202)).status, 200)
    assert.equal((await ask('', 503)).status, 503)
  })
})
