import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { after, before, describe, it } from 'node:test'
import type { Page } from 'playwright-core'
import { type RunningGateway, startGateway } from '../../gateway/src/index.ts'
import { type AuthorizationServer, startAuthorizationServer } from '../../../tests/support/authorization-server.ts'
import { CALLERS } from '../../../tests/support/keys.ts'
import { type Seat, setStage, type Stage } from './browser.ts'
import { findChromium } from './chromium.ts'

const executablePath = findChromium()

if (executablePath !== undefined)
  describe('a login with OpenID Connect', () => {
    let stage: Stage
    let login: AuthorizationServer
    let gateway: RunningGateway

    before(async () => {
      stage = await setStage(executablePath)
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
          servers: [],
          callers: CALLERS,
          groups: [],
          policy: [{ allow: ['*'] }],
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
    })
    after(async () => {
      await gateway?.close()
      await login?.close()
      await stage?.close()
    })

    it('opens the console for a person with a group that may log in, until they log out', async () => {
      login.account = 'vera'
      await inBrowser(async (page, { strayed }) => {
        await page.getByRole('link', { name: 'Log in with corp' }).click()
        await page.getByText('corp/vera').first().waitFor()
        assert.deepEqual(await session(page), { user: 'corp/vera', roles: ['approver'] })
        const cookies = (await page.context().cookies()).filter(({ name }) => name.startsWith('toolgate'))
        assert.deepEqual(
          cookies.map(({ httpOnly, sameSite }) => [httpOnly, sameSite]),
          [[true, 'Strict']],
        )
        assert.ok(strayed.every((url) => url.startsWith(login.issuer)))
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

    async function inBrowser(use: (page: Page, seat: Seat) => Promise<void>): Promise<void> {
      const seat = await stage.open({})
      try {
        await seat.page.goto(`${gateway.url}/`)
        await use(seat.page, seat)
      } finally {
        await seat.context.close()
      }
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
