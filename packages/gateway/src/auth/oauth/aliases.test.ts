import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { JsonObject } from '@toolgate/values/json'
import type { IssuerConfig } from '../../config/oauth.ts'
import { Identities } from './claims.ts'

const CORP: IssuerConfig = {
  issuer: 'https://login.example.com',
  name: 'corp',
  audiences: [],
  algorithms: ['RS256'],
  clockSkewMs: 0,
  claims: { user: 'sub' },
  users: new Map(),
}
const BY_MAIL: IssuerConfig = { ...CORP, claims: { user: 'email' } }

function names(claims: JsonObject, config: IssuerConfig, all: readonly IssuerConfig[] = [CORP, BY_MAIL]) {
  const { user, aliases = [] } = new Identities(undefined, all).of(claims, config).caller
  return new Set([user, ...aliases])
}

describe('the names of a person', () => {
  it('meet where two logins of one subject name the user by different claims', () => {
    const token = names({ sub: '7' }, CORP)
    const login = names({ sub: '7', email: 'ada@example.com' }, BY_MAIL)
    assert.deepEqual([...token], ['corp/7'])
    assert.deepEqual([...login], ['corp/ada@example.com', 'corp/7'])
  })

  it('meet where each client has another "sub", by the "oid" of Entra ID', () => {
    const [one, other] = [names({ sub: 'a', oid: 'o-1' }, CORP), names({ sub: 'b', oid: 'o-1' }, CORP)]
    assert.ok(one.has('corp/o-1') && other.has('corp/o-1'))
  })

  it('include the user of the configuration with "users", in the other one too', () => {
    const mapped = { ...CORP, users: new Map([['7', 'ada']]) }
    assert.deepEqual(names({ sub: '7' }, CORP, [CORP, mapped]), new Set(['corp/7', 'ada']))
    assert.deepEqual(names({ sub: '7' }, mapped, [CORP, mapped]), new Set(['ada', 'corp/7']))
  })

  it('are not those of a subject of another issuer', () => {
    const other = { ...CORP, issuer: 'https://other.example.com', name: 'other', users: new Map([['7', 'ada']]) }
    assert.deepEqual(names({ sub: '7' }, CORP, [CORP, other]), new Set(['corp/7']))
  })
})
