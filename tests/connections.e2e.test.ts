import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type AccountServer, CHECKER, startAccountServer } from './support/account-server.ts'
import { type AuthorizationServer, startAuthorizationServer } from './support/authorization-server.ts'
import { Browser } from './support/connecting.ts'
import { startTestGateway, type TestGateway, until } from './support/gateway.ts'
import { KEYS } from './support/keys.ts'
import { httpServer } from './support/servers.ts'

/** Users who connect a server to their own accounts, with a real authorization server and a real MCP server. */

let login: AuthorizationServer
let server: AccountServer
let gateway: TestGateway

before(async () => {
  login = await startAuthorizationServer({ format: 'opaque', clients: [CHECKER] })
  server = await startAccountServer({ login })
  gateway = await startTestGateway({
    servers: [httpServer('mail', server.url, { per: 'user', listing: 'user', oauth: {} })],
  })
})
after(async () => {
  await gateway?.close()
  await server?.close()
  await login?.close()
})

const textOf = async (who: 'viewer' | 'operator' | 'admin', name = 'mail__whoami') => {
  const { result } = await gateway.call(who, '2026-07-28', name)
  return result?.content?.[0]?.text ?? ''
}

describe('a server that users connect to their accounts', () => {
  it('is connected on a page, and then called as the account of each user', async () => {
    assert.match(await textOf('viewer'), /connect\/mail/)
    const browser = new Browser(gateway.url)
    await browser.logIn('mail', KEYS.viewer)
    login.account = 'vera@mail'
    const answer = await browser.connect('mail', login)
    assert.equal(answer.status, 303, answer.text)
    assert.equal(answer.headers.location, '/connect/mail')
    assert.match((await browser.get('/connect/mail')).text, /mail is connected/)
    await until(async () => (await textOf('viewer')) === 'vera@mail')
    assert.match(await textOf('operator'), /connect\/mail/)
  })
})
