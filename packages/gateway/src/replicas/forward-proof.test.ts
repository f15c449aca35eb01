import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { memoryState } from '@toolgate/core/stores'
import { ForwardProof } from './forward-proof.ts'

const state = memoryState({ clock: { wallMs: () => 0 } })
const asked = { method: 'POST', url: '/mcp', headers: { authorization: 'Bearer a' } }

describe('ForwardProof', () => {
  it('holds for the request, replica and address of the client that it was made for, at each replica', async () => {
    const [proof, other] = [await ForwardProof.open(state), await ForwardProof.open(state)]
    const header = proof.make('b', '203.0.113.7', asked)
    assert.equal(other.addressOf(header, 'b', asked), '203.0.113.7')
    const v6 = proof.make('b', '2001:db8::1', asked)
    assert.equal(other.addressOf(v6, 'b', asked), '2001:db8::1')
    const unknown = proof.make('b', undefined, asked)
    assert.deepEqual([other.holds(unknown, 'b', asked), other.addressOf(unknown, 'b', asked)], [true, undefined])
  })

  it('holds for nothing else', async () => {
    const proof = await ForwardProof.open(state)
    const header = proof.make('b', '203.0.113.7', asked)
    const forged = [
      [header.replace('203.0.113.7', '203.0.113.8'), 'b', asked],
      [header, 'c', asked],
      [header, 'b', { ...asked, method: 'GET' }],
      [header, 'b', { ...asked, url: '/mcp/app' }],
      [header, 'b', { ...asked, headers: { authorization: 'Bearer b' } }],
      [header, 'b', { ...asked, headers: { ...asked.headers, 'mcp-session-id': 's' } }],
      [header, 'b', { ...asked, headers: { ...asked.headers, cookie: 'toolgate_session=x' } }],
      [header, 'b', { ...asked, headers: { ...asked.headers, host: 'evil.example' } }],
      [header, 'b', { ...asked, headers: { ...asked.headers, origin: 'https://evil.example' } }],
      [`203.0.113.7 ${'A'.repeat(43)}`, 'b', asked],
      ['203.0.113.7', 'b', asked],
      ['', 'b', asked],
    ] as const
    for (const [given, to, request] of forged) {
      assert.equal(proof.holds(given, to, request), false, given)
      assert.equal(proof.addressOf(given, to, request), undefined, given)
    }
  })
})
