import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { readConfig, type RunningGateway, startGateway } from '../../gateway/src/index.ts'
import {
  askApprovals,
  LARGE,
  makeWorld,
  PERSON_KEY,
  TENANT_PERSON_KEY,
  type World,
} from '../../../tests/support/large-world.ts'
import { openFresh, PAGES } from '../../../bench/console/pages.ts'
import { enter, type Seat, setStage, type Stage } from './browser.ts'
import { findChromium } from './chromium.ts'

const executablePath = findChromium()
const SIZE = { ...LARGE, calls: 8000 }
/** A world so large is made for some seconds, for a minute on a busy machine. */
const MAKING = { timeout: 290_000 }
/** The rows near the screen, and the first hundred of a table. */
const MAX_NODES = 2600
const MAX_REQUESTS = 10
/** The overview asks each part of the gateway whether something is wrong there. */
const OVERVIEW_REQUESTS = 18
const MAX_KB = 1500
/** The rows of all tools, which the page searches as the person types. They are sent once. */
const TOOLS_KB = 2500

if (executablePath !== undefined)
  describe('the console of a large gateway', () => {
    let stage: Stage
    let world: World
    let gateway: RunningGateway
    let seat: Seat
    const folder = mkdtempSync(join(tmpdir(), 'toolgate-large-'))

    before(async () => {
      stage = await setStage(executablePath)
      world = await makeWorld(folder, SIZE)
      const config = await readConfig(world.configFile)
      gateway = await startGateway(
        { ...config, listen: { ...config.listen, port: 0 } },
        { consoleDir: stage.consoleDir },
      )
      await gateway.ready
      await askApprovals(gateway.url, SIZE)
      seat = await stage.open({ viewport: { width: 1280, height: 900 } })
      seat.page.setDefaultTimeout(60_000)
      await enter(seat.page, `${gateway.url}/#/overview`, PERSON_KEY)
      await seat.page.locator('.figure').first().waitFor()
    }, MAKING)
    after(async () => {
      await seat?.context.close()
      await gateway?.close()
      await world?.close()
      await stage?.close()
      rmSync(folder, { recursive: true })
      assert.deepEqual(seat?.strayed, [])
    }, MAKING)

    for (const shown of PAGES)
      it(`opens ${shown.address} with few requests, kilobytes and elements`, async (t) => {
        const { nodes, fetched } = await openFresh(seat.page, gateway.url, shown)
        assert.ok(await seat.page.locator(shown.ready).first().isVisible(), `${shown.ready} is there`)
        const kb = Math.round(fetched.reduce((sum, { bytes }) => sum + bytes, 0) / 1000)
        t.diagnostic(`${fetched.length} requests, ${kb} kB, ${nodes} elements`)
        assert.ok(nodes <= MAX_NODES, `${nodes} elements`)
        // On a busy machine what is fetched every two seconds comes twice.
        const most = shown.address.startsWith('overview') ? OVERVIEW_REQUESTS : MAX_REQUESTS
        assert.ok(new Set(fetched.map(({ path }) => path)).size <= most, fetched.map(({ path }) => path).join('\n'))
        assert.ok(kb <= (shown.address.startsWith('tools') ? TOOLS_KB : MAX_KB), `${kb} kB`)
      })

    it('does not fetch the tools again that it has', async () => {
      const { page } = seat
      await openFresh(page, gateway.url, { address: 'tools?as=user-5', ready: '.listing-rows > li' })
      const again = page.waitForResponse((response) => new URL(response.url()).pathname === '/api/tools/columns')
      const statuses = await page.evaluate(async () => {
        const path = '/api/tools/columns?as=user-5'
        const first = await fetch(path)
        const second = await fetch(path, { headers: { 'if-none-match': first.headers.get('etag') ?? '' } })
        return [first.status, second.status]
      })
      await again
      assert.deepEqual(statuses, [200, 304])
    })

    it('goes through 10,000 tools with the keyboard, and says where one is', async () => {
      const { page } = seat
      await openFresh(page, gateway.url, { address: 'tools?as=user-5', ready: '.listing-rows > li' })
      await page.locator('.listing-rows a[data-focus]').first().focus()
      await page.keyboard.press('End')
      const last = page.locator('.listing-rows li:focus-within')
      await page.waitForFunction(() => {
        const row = document.activeElement?.closest('li')
        return row && row.getAttribute('aria-posinset') === row.getAttribute('aria-setsize')
      })
      assert.ok(Number(await last.getAttribute('aria-setsize')) > 10_000)
      await page.keyboard.press('Home')
      await page.waitForFunction(() => document.activeElement?.closest('li')?.getAttribute('aria-posinset') === '1')
      assert.ok((await page.locator('.listing-rows > li').count()) < 100)
    })

    it('finds one of 1,000 callers by typing, and keeps its place', async () => {
      const { page } = seat
      await openFresh(page, gateway.url, { address: 'tools?as=user-5', ready: '.listing-rows > li' })
      const choice = page.getByLabel('See as')
      await page.waitForFunction(
        (field) => field instanceof HTMLInputElement && field.value.startsWith('user-5 (operator) – sees'),
        await choice.elementHandle(),
      )
      const place = await choice.boundingBox()
      await choice.fill('user-987')
      await page.getByRole('option', { name: /^user-987/ }).waitFor()
      assert.ok((await page.getByRole('option').count()) < 30)
      assert.deepEqual(await choice.boundingBox(), place)
      await choice.press('Enter')
      await page
        .locator('.summary')
        .getByText(/^user-987 sees/)
        .waitFor()
    })

    it('steps through the callers of the matrix, each as they are alone', async () => {
      const { page } = seat
      const address = 'people?view=matrix&open=group+group1'
      await openFresh(page, gateway.url, { address, ready: '.matrix .tool-line' })
      await page.getByText(/^Equal rights 1 to 8 of \d+, of 1,002 people and callers$/).waitFor()
      await page.getByRole('button', { name: 'Next' }).click()
      await page.getByText(/^Equal rights 9 to \d+ of/).waitFor()
      const column = page.locator('.matrix thead th').nth(1)
      const user = await column.locator('a').first().textContent()
      const cell = page.locator('.matrix tr', { hasText: 'Group 1' }).first().locator('.cell').first()
      const { visible, total } = await page.evaluate(async (as) => {
        const { tools } = (await (await fetch(`/api/tools?as=${as}`)).json()) as {
          tools: readonly { id: string; visible: boolean }[]
        }
        const own = tools.filter(({ id }) => id.startsWith('server01:read_'))
        return { visible: own.filter((tool) => tool.visible).length, total: own.length }
      }, user)
      assert.match((await cell.textContent()) ?? '', new RegExp(`^${visible} of ${total}`))
    })

    it('finds one of 1,000 keys', async () => {
      const { page } = seat
      await openFresh(page, gateway.url, { address: 'people?view=keys', ready: 'table tbody tr' })
      const table = page.getByRole('region', { name: 'The keys' }).locator('table')
      assert.equal(await table.getAttribute('aria-rowcount'), '1003')
      await page.getByRole('button', { name: 'Show 100 more of 902' }).press('Enter')
      await page.getByRole('button', { name: 'Show 100 more of 802' }).waitFor()
      await page.getByLabel('Search').fill('user-987')
      await page.getByText('1 key', { exact: true }).waitFor()
      assert.equal(await table.locator('tbody tr').count(), 1)
    })

    it('counts every waiting approval, and renders those near the screen', async () => {
      const { page } = seat
      await openFresh(page, gateway.url, { address: 'approvals', ready: '.request' })
      await page.locator('#waiting-title').filter({ hasText: '500' }).waitFor()
      assert.ok((await page.locator('.request').count()) < 60)
    })

    it('counts on the overview what its calls are, one by one', async () => {
      const { page } = seat
      const { overview, calls } = await page.evaluate(async () => {
        type Calls = { calls: readonly { outcome: string }[]; next?: number }
        const get = async (path: string) => (await fetch(path)).json() as Promise<unknown>
        let seen: { isComplete: boolean; since: number; attempts: number; outcomes: Record<string, number> }
        do seen = (await get('/api/overview?period=24h')) as typeof seen
        while (!seen.isComplete)
        const counts: Record<string, number> = {}
        for (let next: number | undefined; ;) {
          const found = (await get(
            `/api/calls?limit=500&since=${seen.since}${next === undefined ? '' : `&before=${next}`}`,
          )) as Calls
          for (const { outcome } of found.calls) counts[outcome] = (counts[outcome] ?? 0) + 1
          if (found.next === undefined) return { overview: seen, calls: counts }
          next = found.next
        }
      })
      for (const [outcome, n] of Object.entries(overview.outcomes)) assert.equal(n, calls[outcome] ?? 0, outcome)
      assert.ok(overview.attempts > SIZE.calls * 0.9)
    })

    it('shows a person of a tenant only what is of the tenant', async () => {
      const { context, page, strayed } = await stage.open({})
      try {
        await enter(page, `${gateway.url}/#/people?view=matrix`, TENANT_PERSON_KEY)
        await page.getByRole('region', { name: 'Groups and callers' }).locator('.cell').first().waitFor()
        const { tenants, users } = await page.evaluate(async () => {
          const body = (await (await fetch('/api/matrix?limit=24')).json()) as {
            columns: readonly { people: number; tenant?: string }[]
          }
          return {
            tenants: body.columns.map(({ tenant }) => tenant),
            users: body.columns.reduce((sum, { people }) => sum + people, 0),
          }
        })
        assert.deepEqual([...new Set(tenants)], ['acme'])
        assert.ok(users > 24, `${users} people`)
        assert.deepEqual(strayed, [])
      } finally {
        await context.close()
      }
    })
  })
