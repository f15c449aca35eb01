import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { bearerChallenge } from './bearer-challenge.ts'

const PLACE = 'https://mail.example.com/meta?a=b'

describe('bearerChallenge', () => {
  const spellings: readonly (readonly [string, string])[] = [
    ['quoted', `Bearer resource_metadata="${PLACE}"`],
    ['without quotes', `Bearer resource_metadata=${PLACE}, error="invalid_token"`],
    ['in upper case', `BEARER Resource_Metadata="${PLACE}"`],
    ['with spaces around "="', `bearer  realm = "a, b" , resource_metadata = "${PLACE}"`],
    ['without commas', `Bearer error="invalid_token" resource_metadata="${PLACE}"`],
    ['after another scheme', `Basic realm="x", DPoP algs="ES256", Bearer resource_metadata="${PLACE}"`],
    ['after a token68', `Negotiate YIIJvw==, Bearer resource_metadata="${PLACE}"`],
    ['in the second of two bearer challenges', `Bearer realm="x", Bearer resource_metadata="${PLACE}"`],
    ['with escapes', `Bearer realm="a\\"b", resource_metadata="https://mail.example.com/m\\eta?a=b"`],
    ['with empty elements', `,, Bearer ,resource_metadata="${PLACE}",,`],
  ]
  for (const [how, header] of spellings)
    it(`finds the metadata ${how}`, () => assert.equal(bearerChallenge(header).get('resource_metadata'), PLACE))

  it('takes nothing from other schemes, or from text that is no challenge', () => {
    assert.equal(bearerChallenge(`DPoP resource_metadata="${PLACE}"`).size, 0)
    for (const header of [null, '', 'Bearer', '"', 'Bearer error="open', ', ,', '=x'])
      assert.equal(bearerChallenge(header).get('resource_metadata'), undefined, String(header))
  })

  it('reads a long header in one pass', () => {
    assert.equal(bearerChallenge(`Bearer ${'a '.repeat(8_000)}${'\\'.repeat(8_000)}"`).size, 0)
  })
})
