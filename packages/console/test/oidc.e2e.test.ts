import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { after, before, it } from 'node:test'
import type { Page } from 'playwright-core'
import { type RunningGateway, startGateway } from '../../gateway/src/index.ts'
import { type AuthorizationServer, startAuthorizationServer } from '../../../tests/support/authorization-server.ts'
import { type RecordingServer, startRecordingServer } from '../../../tests/support/recording-server.ts'
import { httpServer } from '../../../tests/support/servers.ts'
import { CALLERS } from '../../../tests/support/keys.ts'
import { describeConsole } from './suite.ts'

describeConsole('a login with OpenID Connect', (stage) => {
  let login: AuthorizationServer
  let gateway: RunningGateway
  let server: RecordingServer

  before(async () => {
    server = await startRecordingServer([{ name: 'wire', inputSchema: { type: 'object' } }])
    const port = await freePort()
    const home = `http://127.0.0.1:${port}/`
    login = await startAuthorizationServer({
      clients: [
        {
          client_id: 'console',
          client_secret: 'secret-of-the-console',
          redirect_uris: [`${home}api/oidc/callback`],
          post_logout_redirect_uris: [home],
        },
      ],
      claims: { vera: { groups: ['admins'] }, mallory: { groups: ['guests'] } },
    })
    gateway = await startGateway(
      {
        file: '/test/toolgate.yaml',
        listen: { host: '127.0.0.1', port },
        servers: [httpServer('pay', server.url)],
        callers: CALLERS,
        groups: [],
        policy: [{ ask: [{ match: 'pay:*', login: '5m' }] }],
        limits: [],
        audit: { store: 'memory', mode: 'batched' },
        oidc: {
          server: {
            issuer: login.issuer,
            name: 'corp',
            audiences: [],
            algorithms: ['RS256'],
            clockSkewMs: 30_000,
            claims: { user: 'sub', roles: 'groups' },
            users: new Map(),
          },
          clientId: 'console',
          clientSecret: 'secret-of-the-console',
          scopes: ['openid'],
          roles: new Map([['admins', ['approver']]]),
        },
      },
      { consoleDir: stage.consoleDir },
    )
    await gateway.ready
  })
  after(async () => {
    await gateway?.close()
    await login?.close()
    await server?.close()
  })

  it('opens the console for a person with a group that may log in, until they log out', async () => {
    login.account = 'vera'
    await inBrowser(async (page, leave) => {
      await page.getByRole('link', { name: 'Log in with corp' }).click()
      await page.getByText('corp/vera').first().waitFor()
      assert.deepEqual(await session(page), { user: 'corp/vera', roles: ['approver'] })
      const cookies = (await page.context().cookies()).filter(({ name }) => name.startsWith('toolgate'))
      assert.deepEqual(
        cookies.map(({ httpOnly, sameSite }) => [httpOnly, sameSite]),
        [[true, 'Strict']],
      )
      // The issuer's page of a logout loads its fonts.
      leave()
      await page.getByRole('button', { name: 'Log out' }).click()
      await page.getByRole('button', { name: /sign me out/ }).click()
      await page.getByRole('link', { name: 'Log in with corp' }).waitFor()
      assert.equal(await session(page), 401)
    })
  })

  it('keeps out a person without such a group, and an answer that this browser did not ask for', async () => {
    login.account = 'mallory'
    await inBrowser(async (page) => {
      await page.getByRole('link', { name: 'Log in with corp' }).click()
      await page.getByText('The login failed.').waitFor()
      assert.equal(await session(page), 401)
      const answer = await page.goto(`${gateway.url}/api/oidc/callback?code=c&state=s&iss=${login.issuer}`)
      assert.equal(answer?.status(), 403)
      assert.equal(await session(page), 401)
    })
  })

  it('leads from the page of an approval back to it, and is no newer than the login at the issuer', async () => {
    login.account = 'vera'
    login.loggedInSecondsAgo = 600
    const path = await ask()
    await inBrowser(async (page) => {
      await page.goto(gateway.url + path)
      await page.getByRole('link', { name: 'Log in with corp' }).click()
      await page.getByRole('heading', { name: 'Approve this call?' }).waitFor()
      assert.equal(page.url(), gateway.url + path)
      // The issuer still knows the person, and asks for nothing.
      await page.goto(`${gateway.url}/api/oidc/login?back=${encodeURIComponent(path)}`)
      await page.getByText('The policy wants a fresh login.').waitFor()
      await page.getByRole('button', { name: 'Approve this call once' }).click()
      await page.getByText('needs a login that is at most 300 s old').waitFor()
      await page.goto(gateway.url + path)
      login.loggedInSecondsAgo = 0
      await page.getByRole('link', { name: 'Log in again with corp' }).click()
      await page.getByRole('heading', { name: 'Approve this call?' }).waitFor()
      await page.getByRole('button', { name: 'Approve this call once' }).click()
      await page.getByRole('heading', { name: 'This call is approved' }).waitFor()
    })
  })

  it('leads to no other page than those of this gateway', async () => {
    login.account = 'vera'
    for (const back of [
      'https://evil.example',
      '//evil.example',
      '/\\evil.example',
      '/approvals/../../x',
      'javascript:1',
    ])
      await inBrowser(async (page) => {
        await page.goto(`${gateway.url}/api/oidc/login?back=${encodeURIComponent(back)}`)
        await page.getByText('corp/vera').first().waitFor()
        assert.equal(page.url(), `${gateway.url}/`)
      })
  })

  let cents = 0

  /** Makes a call that waits for an approval, and returns the path of its page. */
  async function ask(): Promise<string> {
    const view = await gateway.gate.view({ user: 'omar' })
    const outcome = await view.call({ tool: 'pay:wire', input: { cents: ++cents } })
    assert.equal(outcome.status, 'waiting')
    return `/approvals/${outcome.approval.id}`
  }

  /** `leave` checks the requests so far, and allows those of pages that are not the console's. */
  async function inBrowser(use: (page: Page, leave: () => void) => Promise<void>): Promise<void> {
    const { page, strayed } = await stage.open()
    let hasLeft = false
    const check = () => {
      // The login is at another host.
      const others = strayed.splice(0).filter((url) => !url.startsWith(login.issuer))
      if (!hasLeft) assert.deepEqual(others, [])
    }
    await page.goto(`${gateway.url}/`)
    await use(page, () => {
      check()
      hasLeft = true
    })
    check()
  }

  /** Returns who is logged in, or the status of the refusal. */
  async function session(page: Page): Promise<unknown> {
    const answer = await page.context().request.get(`${gateway.url}/api/session`)
    return answer.ok() ? answer.json() : answer.status()
  }
})

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()))
  const { port } = server.address() as { port: number }
  await new Promise<void>((resolve) => server.close(() => resolve()))
  return port
}
