import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { findChromium } from '../packages/console/test/chromium.ts'
import { startTestGateway, tempFolder, until } from './support/gateway.ts'
import type { Who } from './support/keys.ts'
import { MODERN, textOf } from './support/rpc.ts'
import { nodeServer } from './support/servers.ts'

const executablePath = findChromium()
const program = findPlaywright()

/** Returns the program of Playwright's server. Without it, logs a line and returns `undefined`, or throws in CI. */
function findPlaywright(): string | undefined {
  try {
    return join(createRequire(import.meta.url).resolve('@playwright/mcp/package.json'), '../cli.js')
  } catch (error) {
    if (process.env['CI'] === 'true') throw error
    console.warn('The test of two users of a Playwright server cannot run: @playwright/mcp is not installed.')
    return undefined
  }
}

/** A site with a login: it shows the name in the cookie, which `/login/<name>` sets for a day. */
async function startSite(): Promise<{ readonly url: string; close(): Promise<void> }> {
  const site = createServer(({ url = '', headers }, response) => {
    const name = /^\/login\/(\w+)$/.exec(url)?.[1] ?? /name=(\w+)/.exec(headers.cookie ?? '')?.[1] ?? 'nobody'
    const cookie = { 'set-cookie': `name=${name}; Max-Age=86400; Path=/` }
    response.writeHead(200, { 'content-type': 'text/html', ...(url.startsWith('/login/') ? cookie : {}) })
    response.end(`<title>Site</title><h1>Signed in as ${name}</h1>`)
  })
  await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(site.address() as AddressInfo).port}`,
    close: () => {
      site.closeAllConnections()
      return new Promise((resolve) => site.close(() => resolve()))
    },
  }
}

if (executablePath !== undefined && program !== undefined)
  describe('two users of a Playwright server', () => {
    it('see nothing of each other, and stay signed in when their browsers were idle', async () => {
      const folder = tempFolder()
      const site = await startSite()
      const args = [program, '--headless', '--browser=chrome', `--executable-path=${executablePath}`, '--no-sandbox']
      const given = { per: 'user', startTimeoutMs: 60_000, callTimeoutMs: 60_000 } as const
      const { cwd: _shared, ...browser } = nodeServer('browser', args, given)
      const gateway = await startTestGateway({
        servers: [browser],
        instances: { path: folder.path, idleMs: 10_000 },
      })
      const call = async (who: Who, tool: string, input: object = {}) =>
        textOf(await gateway.call(who, MODERN, `browser__browser_${tool}`, input))
      const open = async (who: Who, path: string) => {
        await call(who, 'navigate', { url: `${site.url}${path}` })
        return call(who, 'snapshot')
      }
      try {
        await Promise.all([open('viewer', '/login/viewer'), open('operator', '/login/operator')])
        for (const [who, other] of [
          ['viewer', 'operator'],
          ['operator', 'viewer'],
        ] as const) {
          const seen = (await call(who, 'snapshot')) + (await call(who, 'tabs', { action: 'list' }))
          assert.match(seen, new RegExp(`Signed in as ${who}`))
          assert.doesNotMatch(seen, new RegExp(other))
        }
        assert.match(await open('admin', '/'), /Signed in as nobody/)
        await call('viewer', 'close')
        await until(() => gateway.servers()[0]?.instances?.users?.length === 0, 60_000)
        assert.match(await open('viewer', '/'), /Signed in as viewer/)
      } finally {
        await gateway.close()
        await site.close()
        folder.remove()
      }
    })
  })
