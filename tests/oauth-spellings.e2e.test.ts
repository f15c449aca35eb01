import assert from 'node:assert/strict'
import { afterEach, describe, it } from 'node:test'
import type { GatewayConfig } from '@toolgate/gateway'
import { CHECKER, startAccountServer } from './support/account-server.ts'
import { startAuthorizationServer } from './support/authorization-server.ts'
import { Browser } from './support/connecting.ts'
import { startTestGateway } from './support/gateway.ts'
import { KEYS } from './support/keys.ts'
import { MODERN } from './support/rpc.ts'
import { httpServer } from './support/servers.ts'

/** Authorization servers and sites as they are: metadata at the root only, silence about PKCE, their own spellings. */

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

/** Writes answers as Cognito, Entra ID, GitHub and others do. */
function rewrite(path: string, body: Record<string, unknown>) {
  if (path.startsWith('/.well-known/oauth-authorization-server')) return { status: 403, body: { message: 'Forbidden' } }
  if (path === '/.well-known/openid-configuration') {
    const { code_challenge_methods_supported: _, ...silent } = body
    return { status: 200, body: { ...silent, service_documentation: null, op_policy_uri: null } }
  }
  if (path === '/reg') return { status: 200, body: { ...body, client_secret: null, client_name: null } }
  if (path === '/token' && 'access_token' in body)
    return {
      status: 201,
      body: {
        ...body,
        token_type: 'BEARER',
        expires_in: '3600',
        scope: ['tools'],
        refresh_token: null,
        id_token: null,
      },
    }
  return undefined
}

async function world(rootOnly: number) {
  const login = await startAuthorizationServer({ format: 'opaque', clients: [CHECKER], rewrite })
  const server = await startAccountServer({ login, rootOnly })
  closing.push(login.close, server.close)
  login.account = 'vera@mail'
  const start = async (oauth: GatewayConfig['servers'][number]['oauth'] & object) => {
    const mail = httpServer('mail', server.url, { per: 'user', listing: 'user', oauth })
    const gateway = await startTestGateway({ servers: [mail] })
    closing.push(gateway.close)
    const browser = new Browser(gateway.url)
    await browser.logIn('mail', KEYS.viewer)
    return { gateway, browser }
  }
  return { login, start }
}

describe('a server whose sites answer in their own way', () => {
  for (const status of [401, 403, 405, 500, 200])
    it(`is connected, though the place of its path answers ${status}`, async () => {
      const { login, start } = await world(status)
      const { gateway, browser } = await start({ issuer: login.issuer, pkce: 'S256' })
      const answer = await browser.connect('mail', login)
      assert.equal(answer.status, 303, answer.text)
      const { result } = await gateway.call('viewer', MODERN, 'mail__whoami')
      assert.equal(result?.content?.[0]?.text, 'vera@mail')
    })

  it('is refused where nobody vouches for its PKCE, with the line that would', async () => {
    const { start } = await world(401)
    const { browser } = await start({})
    await assert.rejects(browser.begin('mail'), /does not announce PKCE.*servers\.mail\.oauth/s)
  })
})
