import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, it } from 'node:test'
import { loadConfig } from '../load-config.ts'

const REALM = 'https://login.example.com/realms'

/** Reads a file with these issuers of `oauth`, and these further lines of `oidc`. */
function load(issuers: readonly string[], oidc?: string) {
  const folder = mkdtempSync(path.join(tmpdir(), 'toolgate-oauth-'))
  try {
    const file = path.join(folder, 'toolgate.yaml')
    const login = oidc === undefined ? '' : `oidc: { clientId: console, roles: { admins: [approver] }, ${oidc} }`
    writeFileSync(
      file,
      `servers: {}\npolicy: [{ allow: ["*"] }]\noauth: { issuers: [${issuers.join(', ')}] }\n${login}\n`,
    )
    return loadConfig(file)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

describe('oauth and oidc', () => {
  it('never make one user of two issuers', () => {
    assert.throws(
      () => load([`{ issuer: ${REALM}/a }`, `{ issuer: ${REALM}/b }`]),
      /name "login.example.com" of an earlier/,
    )
    assert.throws(
      () => load([`{ issuer: ${REALM}/agents }`], `issuer: ${REALM}/staff`),
      /oidc.*has the name "login.example.com" of another issuer in "oauth", expected a "name" of its own/,
    )
    load([`{ issuer: ${REALM}/agents }`], `issuer: ${REALM}/staff, name: staff`)
  })

  it('never make two users of one person', () => {
    assert.throws(
      () => load([`{ issuer: ${REALM}/a, name: corp }`], `issuer: ${REALM}/a`),
      /oidc.*has the name "login.example.com", expected "corp" as in "oauth": the same people/,
    )
    load([`{ issuer: ${REALM}/a, name: corp }`], `issuer: ${REALM}/a, name: corp`)
  })

  it('ask one issuer about tokens that do not say whose they are', () => {
    const asks = (issuer: string, more = '') =>
      `{ issuer: ${REALM}/${issuer}, name: ${issuer}, introspection: { clientId: a, clientSecret: b${more} } }`
    assert.throws(() => load([asks('a'), asks('b')]), /issuers\[1\].*only the first issuer is asked/)
    load([asks('a'), asks('b', ', tokens: always')])
  })

  it('have no "iss" in common, and are one issuer where they have', () => {
    const aliased = `{ issuer: ${REALM}/a, name: a, issuerAliases: ["${REALM}/b"] }`
    assert.throws(() => load([aliased, `{ issuer: ${REALM}/b, name: b }`]), /issuers\[0\].*of another issuer/)
    assert.throws(() => load([aliased], `issuer: ${REALM}/b, name: b`), /has the name "b", expected "a" as in "oauth"/)
    load([aliased], `issuer: ${REALM}/b, name: a`)
  })

  it('translate the values of a claim that is named', () => {
    const roles = (claims: string) => `{ issuer: ${REALM}/a, ${claims} roles: { "5f3c": [admin, user], none: [] } }`
    assert.throws(() => load([roles('')]), /"roles" without "claims.roles"/)
    const { oauth } = load([roles('claims: { roles: groups },')])
    assert.deepEqual(oauth?.issuers[0]?.roles?.get('5f3c'), ['admin', 'user'])
  })
})
