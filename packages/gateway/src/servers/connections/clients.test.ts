import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { memoryState, systemClock } from '@toolgate/core/stores'
import type { ServerOAuth } from '../../config/server-oauth.ts'
import { SecretSealer } from '../../util/sealer.ts'
import { Clients } from './clients.ts'
import { callbackOf, clientDocument } from './oauth-server.ts'

const SERVER = { issuer: 'https://login.example.com', registration_endpoint: 'https://login.example.com/reg' }

const mail = (oauth: ServerOAuth = {}) => ({ name: 'mail', oauth })

function make(publicUrl: string) {
  const state = memoryState()
  const bodies: unknown[] = []
  const answer = { client_id: 'made', client_secret: 'a-secret-that-is-made', client_secret_expires_at: 0 }
  const fetch = async (_url: string, { body }: { readonly body?: unknown } = {}) => {
    bodies.push(JSON.parse(String(body)))
    return Response.json(answer, { status: 201 })
  }
  const sealer = new SecretSealer({ state, clock: systemClock, isLasting: true })
  return { clients: new Clients({ state, sealer, publicUrl }), bodies, fetch, state }
}

describe('Clients', () => {
  const PUBLIC = 'https://tools.example.com'

  it('finds the configured client first', async () => {
    const { clients, fetch } = make(PUBLIC)
    const configured = { clientId: 'own', clientSecret: 'own-secret' }
    assert.deepEqual(await clients.find(mail(configured), SERVER, fetch), {
      client: { id: 'own', secret: 'own-secret' },
      callback: '/connect/~callback/mail',
    })
  })

  it('is a metadata document where the authorization server takes one, and names its issuer, and people reach the gateway by https', async () => {
    const silent = { ...SERVER, client_id_metadata_document_supported: true }
    const taking = { ...silent, authorization_response_iss_parameter_supported: true }
    const { clients, fetch, bodies } = make(PUBLIC)
    assert.deepEqual(await clients.find(mail(), taking, fetch), {
      client: { id: `${PUBLIC}/connect/~client.json` },
      callback: '/connect/~callback',
    })
    assert.equal((clientDocument(PUBLIC) as { client_id: string }).client_id, `${PUBLIC}/connect/~client.json`)
    const local = make('http://127.0.0.1:1')
    assert.equal((await local.clients.find(mail(), taking, local.fetch)).client.id, 'made')
    assert.deepEqual(bodies, [])
    assert.equal((await clients.find(mail(), silent, fetch)).client.id, 'made')
  })

  it('registers once for a server and its authorization server, each time with another redirect URI, and keeps the secret sealed', async () => {
    const { clients, fetch, bodies, state } = make(PUBLIC)
    const callback = callbackOf('registered', 'mail', SERVER.issuer)
    const made = { client: { id: 'made', secret: 'a-secret-that-is-made' }, callback }
    assert.deepEqual(await clients.find(mail(), SERVER, fetch), made)
    assert.deepEqual(await clients.find(mail(), SERVER, fetch), made)
    assert.equal(bodies.length, 1)
    assert.deepEqual((bodies[0] as { redirect_uris: unknown }).redirect_uris, [`${PUBLIC}${callback}`])
    assert.match(callback, /^\/connect\/~callback\/mail\/[\w-]{22}$/)
    assert.ok(!JSON.stringify(await state.list('')).includes('a-secret'))
    await clients.forget(mail(), SERVER.issuer)
    await clients.find(mail(), SERVER, fetch)
    assert.equal(bodies.length, 2)
    await clients.find({ ...mail(), name: 'other' }, SERVER, fetch)
    await clients.find(mail(), { ...SERVER, issuer: 'https://other.example.com' }, fetch)
    const uris = bodies.map((body) => String((body as { redirect_uris: unknown }).redirect_uris))
    assert.equal(new Set(uris.slice(1)).size, 3)
  })

  it('says what to configure where no client can be registered', async () => {
    const { clients, fetch } = make(PUBLIC)
    await assert.rejects(clients.find(mail(), { issuer: SERVER.issuer }, fetch), /configure a "clientId"/)
  })
})
