import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { after, before, describe, it } from 'node:test'
import type { Page } from 'playwright-core'
import { type RunningGateway, startGateway } from '../../gateway/src/index.ts'
import { type AccountServer, CHECKER, startAccountServer } from '../../../tests/support/account-server.ts'
import { type AuthorizationServer, startAuthorizationServer } from '../../../tests/support/authorization-server.ts'
import { send } from '../../../tests/support/http.ts'
import { callerConfig, CALLERS, KEYS } from '../../../tests/support/keys.ts'
import { httpServer } from '../../../tests/support/servers.ts'
import { checkPage, enter, type Seat, setStage, type Stage } from './browser.ts'
import { findChromium } from './chromium.ts'

const executablePath = findChromium()

if (executablePath !== undefined)
  describe('connections in the console', () => {
    let stage: Stage
    let login: AuthorizationServer
    let server: AccountServer
    let gateway: RunningGateway
    let home: string

    before(async () => {
      stage = await setStage(executablePath)
      login = await startAuthorizationServer({ format: 'opaque', clients: [CHECKER] })
      server = await startAccountServer({ login })
      const port = await freePort()
      // Another site than the authorization server's, so that the browser keeps its cookies back on the way here.
      home = `http://localhost:${port}`
      gateway = await startGateway(
        {
          file: '/test/toolgate.yaml',
          listen: { host: '127.0.0.1', port },
          publicUrl: home,
          servers: [httpServer('mail', server.url, { per: 'user', listing: 'user', oauth: {} })],
          callers: [...CALLERS, callerConfig('demo-vera-as-person', { user: 'viewer' }, 'console')],
          groups: [],
          policy: [{ allow: ['*'] }],
          limits: [],
          audit: { store: 'memory', mode: 'batched' },
        },
        { consoleDir: stage.consoleDir },
      )
      await gateway.ready
    })
    after(async () => {
      await gateway?.close()
      await server?.close()
      await login?.close()
      await stage?.close()
    })

    it('leads to the sign-in of a server and back, shows what is connected, and disconnects it', async () => {
      await inBrowser(async (page, { strayed }) => {
        await enter(page, `${home}/#/connections`, 'demo-vera-as-person')
        await page.getByText('not connected').waitFor()
        await checkPage(page, 'connections')
        await page.getByRole('link', { name: 'Connect mail' }).click()
        await page.getByRole('heading', { name: 'Connect mail?' }).waitFor()
        await checkPage(page, 'the page of a connection')
        await picture(page, 'connect-page')
        login.account = 'vera@mail'
        await page.getByRole('button', { name: 'Connect' }).click()
        await page.getByRole('heading', { name: 'mail is connected' }).waitFor()
        assert.equal(page.url(), `${home}/connect/mail`)
        await checkPage(page, 'the page of a connection that is made')
        await picture(page, 'connected-page')
        assert.ok(strayed.every((url) => url.startsWith(login.issuer)))
        await page.getByRole('link', { name: 'Console' }).click()
        await page.getByRole('link', { name: 'People and keys' }).click()
        await page.getByRole('link', { name: 'viewer (you)' }).click()
        await page.getByText(`at ${login.issuer}`).waitFor()
        await checkPage(page, 'a connection')
        await picture(page, 'connections')
        assert.match(await whoami(), /vera@mail/)
        await page.getByRole('button', { name: 'Disconnect mail' }).click()
        await page.getByText('not connected').waitFor()
        assert.match(await whoami(), /has not connected/)
      })
    })

    it('opens the page of a server alone for an agent’s key of the user', async () => {
      await inBrowser(async (page) => {
        await page.goto(`http://127.0.0.1:${gateway.port}/connect/mail`)
        assert.equal(page.url(), `${home}/connect/mail`)
        await page.getByLabel('Your key').fill(KEYS.operator)
        await page.getByRole('button', { name: 'Log in' }).click()
        await page.getByRole('heading', { name: 'Connect mail?' }).waitFor()
        await page.goto(`${home}/#/connections`)
        await page.getByLabel('Console key').waitFor()
      })
    })

    async function whoami(): Promise<string> {
      const { text } = await send(`${home}/api/call`, {
        headers: { authorization: `Bearer ${KEYS.viewer}`, 'content-type': 'application/json' },
        body: JSON.stringify({ tool: 'mail:whoami' }),
      })
      return text
    }

    async function inBrowser(use: (page: Page, seat: Seat) => Promise<void>): Promise<void> {
      const seat = await stage.open({ viewport: { width: 1200, height: 700 } })
      try {
        await use(seat.page, seat)
      } finally {
        await seat.context.close()
      }
    }
  })

/** A picture for people who look at the page. */
async function picture(page: Page, name: string): Promise<void> {
  const folder = process.env['TOOLGATE_PICTURES']
  if (folder !== undefined) await page.screenshot({ path: `${folder}/${name}.png` })
}

async function freePort(): Promise<number> {
  const listening = createServer()
  await new Promise<void>((resolve) => listening.listen(0, '127.0.0.1', () => resolve()))
  const { port } = listening.address() as { port: number }
  await new Promise<void>((resolve) => listening.close(() => resolve()))
  return port
}
