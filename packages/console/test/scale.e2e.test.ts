import assert from 'node:assert/strict'
import { it, type TestContext } from 'node:test'
import type { Page } from 'playwright-core'
import type { FakeOptions } from './fake-gateway.ts'
import { type OpenedPage, withFakePage } from './fake-page.ts'
import { describeConsole } from './suite.ts'

/** A dozen rows are rendered above and below the screen. */
const MAX_RENDERED = 90

/** Figures of the browser while something happens. */
interface Measured {
  /** Milliseconds of the longest task. */
  readonly longestTaskMs: number
  readonly longTasks: number
  readonly frames: number
  /** Frames with a gap between the rows on the screen. */
  readonly blankFrames: number
}

describeConsole('the console with much data', (stage) => {
  it('shows 5,000 tools, renders those on the screen, and searches all', (t) =>
    withPage('tools?as=operator', '.listing-rows', { moreTools: 4984 }, async ({ page }) => {
      await page.locator('.summary').filter({ hasText: 'of 5000 tools' }).waitFor()
      const rows = page.locator('.listing-rows > li')
      assert.ok((await rows.count()) < MAX_RENDERED)
      report(t, '5,000 tools, scrolled through', await measure(page, '.listing-rows > li', () => scrollThrough(page)))
      assert.ok((await rows.count()) < MAX_RENDERED)
      const searched = await measure(page, 'html', async () => {
        await page.getByLabel('Search').pressSequentially('number 4321')
        await page.locator('.summary').filter({ hasText: '1 match the filter' }).waitFor()
      })
      report(t, '5,000 tools, searched as typed', searched)
      await page.getByRole('link', { name: 'tool_4321' }).waitFor()
    }))

  it('shows who sees 5,000 tools, with a group of 250 open', (t) =>
    withPage('people?view=matrix', '.matrix', { moreTools: 4984 }, async ({ page }) => {
      await page.getByRole('button', { name: 'bulk3', exact: true }).click()
      await page.getByRole('row', { name: /^bulk3:tool_0003/ }).waitFor()
      assert.ok((await page.locator('.matrix tr').count()) < MAX_RENDERED)
      const scrolled = await measure(page, '.matrix', async () => {
        await page.locator('.matrix-box').evaluate((box) => (box.scrollTop = box.scrollHeight))
        await page.getByRole('row', { name: /^bulk19/ }).waitFor()
      })
      report(t, 'the callers of 5,000 tools', scrolled)
      assert.ok((await page.locator('.matrix tr').count()) < MAX_RENDERED)
    }))

  it('keeps pages small while 200 records a second arrive', async () => {
    const pages = [
      ['live', 'tr.record'],
      ['calls', 'tr.record'],
      ['overview', '.figure'],
      ['approvals', '.request'],
    ] as const
    // Each mostly waits for records, so they run at once.
    const all = pages.map(([address, ready]) =>
      withPage(address, ready, { recordCount: 10_000 }, async ({ page, gateway }) => {
        await page.getByText('Live', { exact: true }).last().waitFor()
        for (let i = 0; i < 60; i++) {
          gateway.record(10)
          await new Promise((resolve) => setTimeout(resolve, 50))
        }
        assert.ok((await page.locator(ready).count()) < MAX_RENDERED, address)
      }),
    )
    await Promise.all(all)
  })

  it('shows its first view on a machine that is four times slower', (t) =>
    withPage('overview', '.figure', {}, async ({ page, gateway }) => {
      const session = await page.context().newCDPSession(page)
      await session.send('Emulation.setCPUThrottlingRate', { rate: 4 })
      for (const [address, ready] of [
        ['overview', '.figure'],
        ['approvals', '.request'],
        ['calls', 'tr.record'],
        ['tools?as=operator', '.listing-rows'],
      ] as const) {
        await page.goto('about:blank')
        await page.goto(`${gateway.url}/#/${address}`, { waitUntil: 'commit' })
        t.diagnostic(`${address}: the first view after ${Math.round(await page.evaluate(untilShown, ready))} ms`)
      }
    }))

  for (const [address, path, ready] of [
    ['overview?period=1h', '/api/overview', '.figure'],
    ['calls?outcome=done', '/api/calls', 'tr.record'],
    ['tools?as=operator', '/api/tools/columns', '.listing-rows'],
    ['tool?id=files:move_file&as=operator', '/api/tool', '.sheet'],
    ['people?view=matrix', '/api/matrix', '.matrix'],
  ] as const)
    it(`shows ${address} from the answer to its first request`, () =>
      withPage('overview', '.figure', {}, async ({ page, gateway }) => {
        await page.goto('about:blank')
        let requests = 0
        await page.route(
          (url) => url.pathname === path,
          (route) => (++requests === 1 ? route.continue() : route.abort()),
        )
        await page.goto(`${gateway.url}/#/${address}`)
        await page.locator(ready).first().waitFor()
      }))

  it('shows a change of a group at once', (t) =>
    withPage('tools?as=viewer', '.section', {}, async ({ page, gateway }) => {
      await page.getByText('Live', { exact: true }).last().waitFor()
      const seen = page.evaluate(
        () =>
          new Promise<number>((resolve) => {
            const observer = new MutationObserver(() => {
              if (document.querySelector('.section .badge')?.textContent !== 'unavailable') resolve(Date.now())
            })
            observer.observe(document.body, { subtree: true, childList: true, characterData: true })
          }),
      )
      await page.evaluate(() => undefined)
      const changedAt = Date.now()
      gateway.setWeb(true)
      t.diagnostic(`a group's change was on the page after ${(await seen) - changedAt} ms`)
    }))

  it('holds 100,000 records, scrolls through them, adds new ones, and renders those on the screen', (t) =>
    withPage('live', 'tr.record', { recordCount: 100_000 }, async ({ page, gateway }) => {
      await page.getByText('1,000 newest records, more below').waitFor()
      const loaded = await measure(page, 'tr.record', async () => {
        await page.evaluate(async () => {
          while (!document.querySelector('.feed-bar')?.textContent?.includes('100,000 records')) {
            scrollTo(0, document.documentElement.scrollHeight)
            await new Promise((resolve) => setTimeout(resolve, 5))
          }
        })
      })
      report(t, '100,000 records, fetched by scrolling down', loaded)
      assert.ok((await page.locator('tr.record').count()) < MAX_RENDERED)
      await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight))
      await page.getByRole('link', { name: / record 1$/ }).waitFor()
      report(t, '100,000 records, scrolled through', await measure(page, 'tr.record', () => scrollThrough(page)))
      const streamed = await measure(page, 'tr.record', async () => {
        await page.evaluate(() => scrollTo(0, 0))
        for (let i = 0; i < 20; i++) {
          gateway.record(50)
          await new Promise((resolve) => setTimeout(resolve, 50))
        }
        await page.waitForFunction(() =>
          document.querySelector('a.opener')?.getAttribute('title')?.endsWith('record 101000'),
        )
      })
      report(t, '1,000 more in a second, at the top', streamed)
      assert.ok((await page.locator('tr.record').count()) < MAX_RENDERED)
      assert.equal(await page.locator('table').getAttribute('aria-rowcount'), '100001')
    }))

  const withPage = (
    address: string,
    ready: string,
    gateway: Partial<FakeOptions>,
    work: (opened: OpenedPage) => Promise<void>,
  ) => withFakePage(stage, { address, ready, gateway, browser: { viewport: { width: 1280, height: 900 } } }, work)
})

/** Resolves with the milliseconds from the navigation to the frame in which a part is there. */
function untilShown(selector: string): Promise<number> {
  return new Promise((resolve) => {
    const look = (): void => {
      if (document.querySelector(selector)) resolve(performance.now())
      else requestAnimationFrame(look)
    }
    requestAnimationFrame(look)
  })
}

/** Scrolls as fast as possible for ten seconds, in steps of a screen. */
async function scrollThrough(page: Page): Promise<void> {
  await page.evaluate(async () => {
    scrollTo(0, 0)
    const step = document.documentElement.scrollHeight / 120
    for (let i = 0; i < 120; i++) {
      scrollBy(0, i % 10 === 9 ? step * 6 : innerHeight * 0.8)
      await new Promise((resolve) => requestAnimationFrame(resolve))
    }
  })
}

async function measure(page: Page, row: string, work: () => Promise<void>): Promise<Measured> {
  await page.evaluate((selector) => {
    const seen = { tasks: [] as number[], frames: 0, blank: 0, isOver: false }
    Object.assign(globalThis, { seen })
    const observer = new PerformanceObserver((list) =>
      seen.tasks.push(...list.getEntries().map(({ duration }) => duration)),
    )
    observer.observe({ entryTypes: ['longtask'] })
    const look = (): void => {
      seen.frames++
      const at = document.elementFromPoint(innerWidth / 2, innerHeight * 0.75)
      if (!at?.closest(selector) && !at?.closest('.section')) seen.blank++
      if (!seen.isOver) requestAnimationFrame(look)
    }
    requestAnimationFrame(look)
  }, row)
  await work()
  return page.evaluate(async () => {
    await new Promise((resolve) => setTimeout(resolve, 100))
    const { seen } = globalThis as unknown as {
      seen: { tasks: number[]; frames: number; blank: number; isOver: boolean }
    }
    seen.isOver = true
    return {
      longestTaskMs: Math.round(Math.max(0, ...seen.tasks)),
      longTasks: seen.tasks.length,
      frames: seen.frames,
      blankFrames: seen.blank,
    }
  })
}

/** Times are logged and not asserted, since they depend on the machine. */
function report(t: TestContext, what: string, { longestTaskMs, longTasks, frames, blankFrames }: Measured): void {
  t.diagnostic(
    `${what}: ${longTasks} long tasks, the longest ${longestTaskMs} ms; ${blankFrames} of ${frames} frames had a gap`,
  )
}
