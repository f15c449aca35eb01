import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { memoryState, systemClock } from '@toolgate/core/stores'
import { Sealer } from '../relay/sealer.ts'
import { Clients } from './clients.ts'
import { clientDocument } from './oauth-server.ts'

const SERVER = { issuer: 'https://login.example.com', registration_endpoint: 'https://login.example.com/reg' }

function make(publicUrl: string) {
  const state = memoryState()
  const bodies: unknown[] = []
  const answer = { client_id: 'made', client_secret: 'a-secret-that-is-made', client_secret_expires_at: 0 }
  const fetch = async (_url: string, { body }: { readonly body?: unknown } = {}) => {
    bodies.push(JSON.parse(String(body)))
    return Response.json(answer, { status: 201 })
  }
  const sealer = new Sealer({ state, clock: systemClock, isLasting: true })
  return { clients: new Clients({ state, sealer, publicUrl }), bodies, fetch, state }
}

describe('Clients', () => {
  const PUBLIC = 'https://tools.example.com'

  it('finds the configured client first', async () => {
    const { clients, fetch } = make(PUBLIC)
    const configured = { clientId: 'own', clientSecret: 'own-secret' }
    assert.deepEqual(await clients.find(configured, SERVER, fetch), { id: 'own', secret: 'own-secret' })
  })

  it('is a metadata document where the authorization server takes one, and people reach the gateway by https', async () => {
    const taking = { ...SERVER, client_id_metadata_document_supported: true }
    const { clients, fetch, bodies } = make(PUBLIC)
    assert.deepEqual(await clients.find({}, taking, fetch), { id: `${PUBLIC}/connect/~client.json` })
    assert.equal((clientDocument(PUBLIC) as { client_id: string }).client_id, `${PUBLIC}/connect/~client.json`)
    const local = make('http://127.0.0.1:1')
    assert.equal((await local.clients.find({}, taking, local.fetch)).id, 'made')
    assert.deepEqual(bodies, [])
  })

  it('registers once for an authorization server, and keeps the secret sealed', async () => {
    const { clients, fetch, bodies, state } = make(PUBLIC)
    const made = { id: 'made', secret: 'a-secret-that-is-made' }
    assert.deepEqual(await clients.find({}, SERVER, fetch), made)
    assert.deepEqual(await clients.find({}, SERVER, fetch), made)
    assert.equal(bodies.length, 1)
    assert.deepEqual((bodies[0] as { redirect_uris: unknown }).redirect_uris, [`${PUBLIC}/connect/~callback`])
    assert.ok(!JSON.stringify(await state.list('')).includes('a-secret'))
    await clients.forget(SERVER)
    await clients.find({}, SERVER, fetch)
    assert.equal(bodies.length, 2)
  })

  it('says what to configure where no client can be registered', async () => {
    const { clients, fetch } = make(PUBLIC)
    await assert.rejects(clients.find({}, { issuer: SERVER.issuer }, fetch), /configure a "clientId"/)
  })
})
