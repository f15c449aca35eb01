import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ALGORITHMS, type IssuerConfig } from './oauth.ts'
import { findPersonWarnings } from './person-warnings.ts'

const ENTRA = 'https://login.microsoftonline.com/8c2b/v2.0'
const OKTA = 'https://acme.okta.com/oauth2/default'

function issuerOf(issuer: string, user: string, name = 'acme'): IssuerConfig {
  return { issuer, name, audiences: [], algorithms: ALGORITHMS, clockSkewMs: 0, claims: { user }, users: new Map() }
}

/** Returns the warnings for tokens and logins of an issuer, which name people by these claims. */
function warn(issuer: string, ofTokens: string, ofLogins: string, nameOfLogins = 'acme'): string {
  const oauth = { issuers: [issuerOf(issuer, ofTokens)], scopes: [], stepUp: [] }
  const server = issuerOf(issuer, ofLogins, nameOfLogins)
  const warnings = findPersonWarnings({ oauth, oidc: { server, clientId: 'c', scopes: [], roles: new Map() } })
  return warnings.map(({ code, path, text }) => `${code} ${path} ${text}`).join()
}

describe('findPersonWarnings', () => {
  it('warns where a person of Entra ID is two users', () => {
    for (const [ofTokens, ofLogins] of [
      ['sub', 'sub'],
      ['oid', 'sub'],
      ['sub', 'oid'],
    ] as const)
      assert.match(warn(ENTRA, ofTokens, ofLogins), /^person_split oauth\.issuers\[0\]\.claims\.user .*user: oid/)
    assert.equal(warn(ENTRA, 'oid', 'oid'), '')
  })

  it('warns where a person of Okta is two users', () => {
    assert.match(warn(OKTA, 'sub', 'sub'), /user: uid/)
    assert.equal(warn(OKTA, 'uid', 'sub'), '')
  })

  it('is silent about other issuers, other people and a console without such a login', () => {
    assert.equal(warn('https://login.acme.com/realms/acme', 'sub', 'sub'), '')
    assert.equal(warn('https://login.microsoftonline.com.evil.example/v2.0', 'sub', 'sub'), '')
    assert.equal(warn(ENTRA, 'sub', 'sub', 'other'), '')
    assert.deepEqual(findPersonWarnings({}), [])
  })
})
