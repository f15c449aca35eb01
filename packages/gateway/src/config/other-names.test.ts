import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type NamingIssuer, otherNames } from './other-names.ts'

function issuer(users: Record<string, string> = {}, more: Partial<NamingIssuer> = {}): NamingIssuer {
  const claims = { user: 'sub', ...more.claims }
  return { issuer: 'https://login.example.com', name: 'corp', users: new Map(Object.entries(users)), ...more, claims }
}

describe('otherNames', () => {
  it('finds the names of one subject in all configurations of its issuer', () => {
    const both = [issuer(), issuer({ '7': 'ada' })]
    assert.deepEqual(otherNames('corp/7', both), ['ada'])
    assert.deepEqual(otherNames('ada', both), ['corp/7'])
    assert.deepEqual(otherNames('bob', both), [])
    assert.deepEqual(otherNames(undefined, both), [])
  })

  it('finds further subjects of a person, and stops', () => {
    const both = [issuer({ '7': 'ada', '8': 'ada' }), issuer({ '8': 'ada.l' }, { claims: { user: 'sub' } })]
    assert.deepEqual(otherNames('corp/7', both), ['ada', 'ada.l', 'corp/8'])
    const many = Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`${i}`, 'ada']))
    assert.equal(otherNames('ada', [issuer(many)]).length, 32)
  })

  it('keeps issuers apart', () => {
    const other = issuer({ '7': 'eve' }, { issuer: 'https://other.example.com', name: 'other' })
    assert.deepEqual(otherNames('corp/7', [issuer(), other]), [])
  })
})
