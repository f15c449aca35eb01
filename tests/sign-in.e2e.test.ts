import assert from 'node:assert/strict'
import { after, afterEach, before, describe, it } from 'node:test'
import { runCommandIn } from './support/command.ts'
import { entra, OVERAGE, V1_ISSUER, v1 } from './support/providers/entra.ts'
import { google } from './support/providers/google.ts'
import { keycloak } from './support/providers/keycloak.ts'
import { okta } from './support/providers/okta.ts'
import type { Claims, Provider } from './support/providers/provider.ts'
import { CONSOLE_KEY, startWorld, type World, Visitor, writtenConfig } from './support/providers/signing-in.ts'
import { type RecordingServer, startRecordingServer } from './support/recording-server.ts'
import { httpServer } from './support/servers.ts'

/** The YAML of the guide, with stand-ins that answer as the providers do. */

let server: RecordingServer
before(async () => {
  server = await startRecordingServer(['open', 'remove'].map((name) => ({ name, description: `Does ${name}.` })))
})
after(() => server?.close())

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

/** Admins see both tools, and users one. */
async function world(provider: Provider, change?: (yaml: string) => string): Promise<World> {
  const opened = await startWorld(provider, change, {
    servers: [httpServer('up', server.url)],
    policy: [
      {
        allow: [
          { match: 'up:open', when: "caller.roles.exists(role, role in ['admin', 'user'])" },
          { match: 'up:remove', when: "'admin' in caller.roles" },
        ],
      },
    ],
  })
  closing.push(opened.close)
  return opened
}

describe('the YAML of the guide', () => {
  for (const provider of [keycloak, entra, okta, google])
    it(`of ${provider.name} is valid as it stands, and has no likely mistake`, () => {
      assert.deepEqual(writtenConfig(provider).warnings ?? [], [])
    })
})

const BOTH = ['up__open', 'up__remove']

for (const provider of [keycloak, entra, okta])
  describe(`people of ${provider.name}`, () => {
    it('log in to the console and bring tokens, with the roles that the guide gives them', async () => {
      const { standIn, gateway, visitor, tools, ask } = await world(provider)
      const ann = standIn.people['ann']?.id
      assert.equal((await visitor.logIn('ann')).status, 303)
      assert.deepEqual(await visitor.session(), { user: `acme/${ann}`, label: 'Ann Archer', roles: ['approver'] })
      assert.deepEqual(await tools(await standIn.accessToken('ann')), BOTH)
      assert.deepEqual(await tools(await standIn.accessToken('bob')), ['up__open'])
      assert.deepEqual(await tools(await standIn.accessToken('eve')), [])
      await ask(await standIn.accessToken('ann'), 'tools/call', { name: 'up__open', arguments: {} })
      const [record] = (
        (await gateway.api('/api/audit?event=tool_result&limit=1', { key: CONSOLE_KEY })).body as {
          records: { user_id?: string; client?: string }[]
        }
      ).records
      // The person of the token is the one of the console, and the client is known.
      assert.equal(record?.user_id, `acme/${ann}`)
    })

    it('may not log in without a role, and the log says why', async () => {
      const { visitor, logged } = await world(provider)
      const answer = await visitor.logIn('eve')
      assert.equal(answer.status, 403)
      assert.match(await answer.text(), /The login failed/)
      assert.equal(await visitor.session(), 401)
      logged(/a login failed: this person may not log in here: (?:no value of the claim|the token has no value of the)/)
    })

    it('have changed roles at the next token and the next login', async () => {
      const { standIn, gateway, visitor, tools } = await world(provider)
      assert.deepEqual(await tools(await standIn.accessToken('bob')), ['up__open'])
      const { bob, ann } = standIn.people
      assert.ok(bob && ann)
      standIn.people['bob'] = { ...bob, groups: ann.groups }
      assert.deepEqual(await tools(await standIn.accessToken('bob')), BOTH)
      assert.equal((await visitor.logIn('bob')).status, 303)
      assert.deepEqual(await visitor.session(), { user: `acme/${bob.id}`, label: bob.name, roles: ['approver'] })
      standIn.people['bob'] = { ...bob, groups: [] }
      assert.deepEqual(await tools(await standIn.accessToken('bob')), [])
      assert.equal((await new Visitor(gateway, standIn).logIn('bob')).status, 403)
    })

    it('are halted at both doors by their name', async () => {
      const { standIn, gateway, ask, tools, visitor } = await world(provider)
      const user = `acme/${standIn.people['ann']?.id}`
      const token = await standIn.accessToken('ann')
      const call = async () => (await ask(token, 'tools/call', { name: 'up__open', arguments: {} })).text
      assert.match(await call(), /open ran/)
      await visitor.logIn('ann')
      const env = { TOOLGATE_URL: gateway.url, TOOLGATE_KEY: CONSOLE_KEY }
      const halted = await runCommandIn(env, 'halt', '--user', user, '--reason', 'odd calls')
      assert.deepEqual([halted.code, halted.err], [0, ''])
      assert.match(await call(), /odd calls/)
      assert.deepEqual(await tools(await standIn.accessToken('ann', { client_id: 'another' })), [])
      assert.deepEqual(await tools(await standIn.accessToken('bob')), ['up__open'])
      const seen = await fetch(`${gateway.url}/api/halts`, { headers: { cookie: visitor.cookie } })
      const { halts } = (await seen.json()) as { halts: readonly { target: unknown; reason: string }[] }
      assert.deepEqual(
        halts.map(({ target, reason }) => [target, reason]),
        [[{ user }, 'odd calls']],
      )
      assert.equal((await runCommandIn(env, 'release', '--user', user)).code, 0)
      assert.match(await call(), /open ran/)
    })
  })

describe('Keycloak', () => {
  it('names what to click for a token without the audience', async () => {
    const { standIn, tools, logged } = await world(keycloak)
    assert.equal(await tools(await standIn.accessToken('ann', { aud: 'account' })), 401)
    logged(/the audience is "account", expected http.*a mapper of the type Audience/)
  })

  it('has roles of a client whose name has a dot, and full paths of groups', async () => {
    const ofClient = (yaml: string) => yaml.replace('realm_access.roles', 'resource_access.tool.gate.roles')
    const { standIn, tools } = await world(keycloak, ofClient)
    assert.deepEqual(await tools(await standIn.accessToken('ann')), BOTH)
    const ofGroups = (yaml: string) =>
      yaml.replaceAll('realm_access.roles', 'groups').replaceAll(/(?<=[{,] )tool-/g, '/team/tool-')
    const other = await world(keycloak, ofGroups)
    assert.deepEqual(await other.tools(await other.standIn.accessToken('bob')), ['up__open'])
    assert.equal((await other.visitor.logIn('ann')).status, 303)
  })

  it('does not open /mcp with an ID token or a refresh token', async () => {
    const { standIn, tools, logged } = await world(keycloak)
    for (const typ of ['ID', 'Refresh', 'Offline'])
      assert.equal(await tools(await standIn.accessToken('ann', { typ })), 401)
    logged(/refused \(kind\)/)
  })

  it('says which claims a token has that brings no roles', async () => {
    const { standIn, tools, logged } = await world(keycloak)
    assert.deepEqual(await tools(await standIn.accessToken('ann', { realm_access: undefined })), [])
    const line = logged(
      /brings no roles.*no value of the claim "realm_access.roles": it has the claims .*resource_access/,
    )
    assert.doesNotMatch(line, /Archer/)
  })
})

describe('Entra ID', () => {
  it('refuses a person in too many groups, and names app roles', async () => {
    const ofGroups = (yaml: string) => yaml.replaceAll('roles: roles', 'roles: groups')
    const { standIn, tools, visitor, logged } = await world(entra, ofGroups)
    assert.equal(await tools(await standIn.accessToken('ann', OVERAGE)), 401)
    logged(/refused \(claims\).*too many groups.*use app roles/)
    assert.equal(await tools(await standIn.accessToken('bob', { hasgroups: true })), 401)
    standIn.inIdToken = OVERAGE
    assert.equal((await visitor.logIn('ann')).status, 403)
    logged(/a login failed: the person is in too many groups/)
  })

  it('has tokens of its first version where they are listed, of the same people', async () => {
    const listed = (yaml: string) =>
      yaml
        .replaceAll('name: acme', `name: acme\n      issuerAliases: ["${V1_ISSUER}"]`)
        .replace(/oidc:\n([\s\S]*?)name: acme\n {6}issuerAliases/, 'oidc:\n$1name: acme\n  issuerAliases')
    const { standIn, gateway, ask } = await world(entra, listed)
    const answer = await ask(await standIn.accessToken('ann', v1('desktop')), 'tools/call', {
      name: 'up__open',
      arguments: {},
    })
    assert.match(answer.text, /open ran/)
    const { body } = await gateway.api('/api/audit?event=tool_result&limit=1', { key: CONSOLE_KEY })
    assert.match(JSON.stringify(body), new RegExp(`acme/${standIn.people['ann']?.id}`))
    assert.match(JSON.stringify(body), /desktop/)
  })

  it('names the manifest for tokens of its first version that are not listed', async () => {
    const { standIn, tools, logged } = await world(entra)
    assert.equal(await tools(await standIn.accessToken('ann', v1())), 401)
    logged(/the issuer is "https:\/\/sts\.windows\.net.*requestedAccessTokenVersion.*issuerAliases/)
  })

  it('names the registration for a token that a client got for itself, and the audience to list', async () => {
    const { standIn, tools, logged } = await world(entra)
    assert.equal(await tools(await standIn.accessToken('ann', { azp: standIn.audience })), 401)
    logged(/register this gateway at the issuer apart from its clients/)
    assert.equal(await tools(await standIn.accessToken('ann', { aud: 'api://other' })), 401)
    logged(/the audience is "api:\/\/other".*the application that stands for this gateway/)
  })

  it('names the directory for an address of all directories', async () => {
    for (const all of ['common', 'organizations']) {
      const { visitor, logged } = await world(entra, (yaml) =>
        yaml.replaceAll(/127\.0\.0\.1:(\d+)\/[^/\s]+\/v2\.0/g, `127.0.0.1:$1/${all}/v2.0`),
      )
      assert.equal((await visitor.logIn('ann')).status, 503)
      logged(/\{tenantid\}.*write the id of yours/)
    }
  })
})

describe('Okta', () => {
  it('says that only Okta can check tokens of the org authorization server', async () => {
    const { standIn, tools, logged } = await world(okta)
    assert.equal(await tools(await standIn.accessToken('ann', {}, { kid: 'of-the-org-server' })), 401)
    logged(/only Okta itself can check tokens of its org authorization server/)
  })

  it('never lets the userinfo endpoint name another person', async () => {
    const { standIn, visitor, logged } = await world(okta)
    standIn.inUserinfo = { sub: standIn.people['bob']?.id }
    assert.equal((await visitor.logIn('ann')).status, 403)
    logged(/userinfo answered 200 without the claims of the person/)
  })

  it('knows the client of a token, and the scopes of a list', async () => {
    const { standIn, gateway, ask } = await world(okta)
    await ask(await standIn.accessToken('ann'), 'tools/call', { name: 'up__open', arguments: {} })
    const { body } = await gateway.api('/api/audit?event=tool_result&limit=1', { key: CONSOLE_KEY })
    assert.match(JSON.stringify(body), /mcp-client/)
  })
})

describe('people of Google', () => {
  it('log in with an address that is listed and verified', async () => {
    const { standIn, visitor, logged } = await world(google)
    assert.equal((await visitor.logIn('ann')).status, 303)
    const { id, name } = standIn.people['ann'] ?? {}
    assert.deepEqual(await visitor.session(), { user: `acme/${id}`, label: name, roles: ['approver'] })
    assert.equal((await visitor.logIn('eve')).status, 403)
    for (const verified of [false, 'false', null]) {
      standIn.inIdToken = { email_verified: verified }
      assert.equal((await visitor.logIn('ann')).status, 403, `${verified}`)
    }
    logged(/"email" is not verified/)
  })

  it('log in where the ID token writes the issuer without https', async () => {
    const { standIn, visitor } = await world(google)
    standIn.inIdToken = { iss: new URL(standIn.issuer).host }
    assert.equal((await visitor.logIn('ann')).status, 303)
    standIn.inIdToken = { iss: 'accounts.evil.example' }
    assert.equal((await visitor.logIn('ann')).status, 403)
  })

  it('log in from their domain only', async () => {
    const ofDomain = (yaml: string) =>
      yaml
        .replace('claims: { roles: email }', 'claims: { roles: hd, tenant: hd }')
        .replace(/roles: \{ ann.*/, 'roles: { acme.com: [] }')
    const { standIn, visitor, logged } = await world(google, ofDomain)
    assert.equal((await visitor.logIn('bob')).status, 303)
    const session = (await visitor.session()) as Claims
    assert.deepEqual([session['tenant'], session['roles']], ['acme.com', []])
    assert.equal((await visitor.logIn('eve')).status, 403)
    logged(/lacks the claim "hd" of the tenant: it has the claims .*email/)
    standIn.inIdToken = { hd: 'evil.example' }
    assert.equal((await visitor.logIn('ann')).status, 403)
  })

  it('bring no tokens, and the log says why', async () => {
    const alsoTokens = (yaml: string) => {
      const [issuer = ''] = /(?<=issuer: )\S+/.exec(yaml) ?? []
      return `${yaml}\noauth: { issuers: [{ issuer: ${issuer}, name: acme }] }\n`
    }
    const { standIn, tools, logged } = await world(google, alsoTokens)
    assert.equal(await tools(await standIn.accessToken('ann')), 401)
    logged(/only Google itself can check its access tokens/)
  })
})

describe('the text of a waiting call', () => {
  it('names a person who logged in and may approve, until a login refuses them', async () => {
    const rules = { servers: [httpServer('up', server.url)], policy: [{ ask: ['up:open'] }] }
    const { standIn, visitor, ask, close } = await startWorld(keycloak, undefined, rules)
    closing.push(close)
    const ann = standIn.people['ann']
    const bob = await standIn.accessToken('bob')
    const text = async () => (await ask(bob, 'tools/call', { name: 'up__open', arguments: {} })).text
    assert.doesNotMatch(await text(), /acme\//)
    assert.equal((await visitor.logIn('ann')).status, 303)
    assert.match(await text(), new RegExp(`acme/${ann?.id}, owner or somebody with the role approver can decide`))
    if (ann) standIn.people['ann'] = { ...ann, groups: [] }
    assert.equal((await visitor.logIn('ann')).status, 403)
    assert.doesNotMatch(await text(), /acme\//)
  })
})
