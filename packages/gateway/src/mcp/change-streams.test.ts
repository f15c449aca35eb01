import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { META } from '@toolgate/mcp'
import type { Authenticator } from '../auth/credential.ts'
import { ChangeStreams } from './change-streams.ts'
import { serveMcp } from '../testing/mcp.ts'

const MODERN = '2026-07-28'
const LISTEN = {
  jsonrpc: '2.0',
  id: 1,
  method: 'subscriptions/listen',
  params: {
    notifications: { toolsListChanged: true },
    _meta: {
      [META.protocolVersion]: MODERN,
      [META.clientInfo]: { name: 'test', version: '1' },
      [META.clientCapabilities]: {},
    },
  },
}

describe('a stream of changes', () => {
  for (const era of ['modern', 'legacy'])
    it(`ends with the token that opened it (${era})`, async (t) => {
      let isAccepted = true
      const caller = Object.freeze({ user: 'corp/vera' })
      const credential = { id: 'vera', for: 'mcp', caller, issuer: 'https://login.example.com' } as const
      const authenticator: Authenticator = {
        authenticate: async () => (isAccepted ? credential : { refused: 'unknown' }),
        current: () => (isAccepted ? credential : undefined),
        renewed: () => (isAccepted ? credential : undefined),
        challenge: () => 'Bearer',
        insufficientScope: () => 'Bearer',
      }
      const streams = new ChangeStreams({
        serverInfo: { name: 'test', version: '1' },
        onFault: assert.ifError,
        keepAliveMs: 5,
      })
      const endpoint = await serveMcp(t, [], { authenticator, streams })
      const open = async () => {
        if (era === 'modern')
          return endpoint.send(LISTEN, {
            headers: { 'mcp-protocol-version': MODERN, 'mcp-method': 'subscriptions/listen' },
          })
        const session = await endpoint.initialize()
        return endpoint.send(undefined, { method: 'GET', session, headers: { accept: 'text/event-stream' } })
      }
      const stream = await open()
      assert.equal(stream.status, 200)
      assert.equal(streams.count, 1)
      isAccepted = false
      await stream.ended()
    })
})
