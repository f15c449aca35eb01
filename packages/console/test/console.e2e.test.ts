import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createRequire } from 'node:module'
import { after, afterEach, before, beforeEach, describe, it } from 'node:test'
import type { AxeResults } from 'axe-core'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { build } from 'vite'
import { findChromium, launchChromium } from './chromium.ts'
import { BIDI_TEXT, type FakeGateway, HOSTILE_NAME, startFakeGateway } from './fake-gateway.ts'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const executablePath = findChromium()

if (executablePath !== undefined)
  describe('the console', () => {
    let consoleDir: string
    let browser: Browser
    let gateway: FakeGateway
    let context: BrowserContext
    let page: Page
    let strayed: string[]

    before(async () => {
      consoleDir = mkdtempSync(join(tmpdir(), 'toolgate-console-'))
      const root = join(import.meta.dirname, '..')
      await build({ root, configFile: join(root, 'vite.config.ts'), logLevel: 'silent', build: { outDir: consoleDir } })
      browser = await launchChromium(executablePath)
    })
    after(async () => {
      await browser.close()
      rmSync(consoleDir, { recursive: true })
    })
    beforeEach(async () => {
      gateway = await startFakeGateway({ consoleDir })
      await openPage({})
    })
    afterEach(async () => {
      await context.close()
      await gateway.close()
      assert.deepEqual(strayed, [], 'nothing is asked of anybody else, and nothing breaks the Content-Security-Policy')
    })

    it('lets a person in with a console key, refuses an agent’s, and lets him out again', async () => {
      await page.goto(gateway.url)
      await logIn('demo-viewer')
      await page.getByRole('alert').getByText("This is an agent's key").waitFor()
      await logIn('wrong')
      await page.getByRole('alert').getByText('The key is not known.').waitFor()
      await logIn('demo-console')
      await page.getByRole('heading', { name: 'Tools', level: 1 }).waitFor()
      await page.getByRole('button', { name: 'Log out' }).click()
      await page.getByLabel('Console key').waitFor()
      await page.reload()
      await page.getByLabel('Console key').waitFor()
    })

    it('shows what a chosen user sees, and for each hidden tool the reason', async () => {
      await open('#/tools?as=viewer')
      await page.getByText('viewer sees 8 of 15 tools.').waitFor()
      const move = toolNamed('move_file')
      assert.match(await move.innerText(), /^deny\s+move_file/)
      assert.match(await move.innerText(), /Policy "viewers read" allows tag:read to role viewer/)
      await page.getByLabel('See as').selectOption('admin')
      await page.getByText('admin sees 13 of 15 tools.').waitFor()
      assert.match(await toolNamed('move_file').innerText(), /^allow/)
      assert.match(await toolNamed('write_file').innerText(), /^ask/)
      assert.equal(new URL(page.url()).hash, '#/tools?as=admin')
    })

    it('says why a group is unavailable and what to do, and sees it come and go', async () => {
      await open('#/tools?as=viewer')
      const group = page.getByRole('listitem').filter({ hasText: 'Web pages' })
      await group.getByText('unavailable').waitFor()
      await group.getByText('Nothing listens on 127.0.0.1:4444 (ECONNREFUSED).').waitFor()
      await group.getByText('Start something on port 4444').waitFor()
      assert.match(await toolNamed('get-tiny-image').innerText(), /^wait[^]*Nothing listens/)
      gateway.setWeb(true)
      await poll()
      await page.getByText('viewer sees 9 of 15 tools.').waitFor()
      assert.match(await toolNamed('get-tiny-image').innerText(), /^allow/)
      gateway.setWeb(false)
      await poll()
      await page.getByText('viewer sees 8 of 15 tools.').waitFor()
    })

    it('filters by word and by outcome, and the address keeps both', async () => {
      await open('#/tools?as=viewer')
      await page.getByRole('button', { name: /^deny/ }).click()
      await page.getByLabel('Filter').fill('files write')
      await page.getByText('3 match the filter').waitFor()
      const { hash } = new URL(page.url())
      assert.equal(hash, '#/tools?as=viewer&show=deny&q=files+write')
      await page.reload()
      await page.getByText('3 match the filter').waitFor()
      await page.getByLabel('Filter').fill('no such thing')
      await page.getByRole('button', { name: 'Clear the filter' }).click()
      await page.getByText('viewer sees 8 of 15 tools.').waitFor()
    })

    it('reports a server that is down and tools that cannot be offered', async () => {
      await open('#/tools?as=viewer')
      await page.getByText('Exited with code 1 (Error: REMOTE_TOKEN is wrong).').waitFor()
      await page.getByText('1 tool that it lists cannot be offered').click()
      await page.getByText('It needs tasks, which are not offered yet.').waitFor()
    })

    it('shows hostile names as text, with what would not be seen made visible', async () => {
      await open('#/tools?as=admin&q=delete_entities')
      const tool = toolNamed('delete_entities')
      await tool.getByText(HOSTILE_NAME).first().waitFor()
      await tool.getByText('reportU+202Efdp.exe').first().waitFor()
      assert.equal(await page.locator('main script').count(), 0)
      await page.goto(`${gateway.url}/#/audit?event=tool_blocked`)
      await page.getByRole('button', { name: HOSTILE_NAME }).first().waitFor()
      await page.goto(`${gateway.url}/#/approvals`)
      await page.getByText('U+202E').waitFor()
      assert.equal(await page.getByText('U+200B').count(), 1)
      assert.ok(!(await page.locator('body').innerText()).includes(BIDI_TEXT))
      assert.notEqual(await page.title(), 'owned')
    })

    it('shows new audit records as they come, newest first', async () => {
      await open('#/audit')
      await page.getByRole('row').nth(50).waitFor()
      const newest = await firstSeq()
      gateway.record(3)
      await poll()
      await page.waitForFunction(
        (seq) => !document.querySelector('td time')?.getAttribute('title')?.endsWith(`record ${seq}`),
        newest,
      )
      assert.equal(await firstSeq(), newest + 3)
    })

    it('holds the table still while it is paused or read, and says how many are new', async () => {
      await open('#/audit')
      await page.getByRole('button', { name: 'Pause' }).click()
      const newest = await firstSeq()
      gateway.record(4)
      await poll()
      await page.getByRole('button', { name: 'Show 4 new' }).waitFor()
      assert.equal(await firstSeq(), newest)
      await page.getByRole('button', { name: 'Show 4 new' }).click()
      await page.getByText('Live, every 2 s').waitFor()
      await page.mouse.wheel(0, 1200)
      await page.waitForFunction(() => scrollY > 500)
      gateway.record(2)
      await poll()
      await page.getByRole('button', { name: 'Show 2 new' }).click()
      await page.waitForFunction(() => scrollY === 0)
      assert.equal(await firstSeq(), newest + 6)
    })

    it('filters the audit by event, tool and user, and goes back to older records', async () => {
      await open('#/audit')
      await page.getByLabel('Event').selectOption('tool_rate_limited')
      await settled()
      await page.getByRole('cell', { name: 'limit 5/60, free again in 14 s' }).first().waitFor()
      assert.equal(await page.getByRole('cell', { name: 'tool_call' }).count(), 0)
      await page.getByLabel('User, exactly').fill('viewer')
      await page.getByLabel('User, exactly').press('Enter')
      await settled()
      assert.equal(await page.getByRole('cell', { name: 'admin', exact: true }).count(), 0)
      assert.equal(new URL(page.url()).hash, '#/audit?event=tool_rate_limited&user=viewer')
      await page.getByLabel('Tool, exactly').fill('no:such')
      await page.getByLabel('Tool, exactly').press('Enter')
      await page.getByText('No record matches').waitFor()
      await page.getByRole('button', { name: 'Clear the filter' }).click()
      await page.getByRole('button', { name: 'Older records' }).click()
      await page.getByRole('button', { name: 'Back to the newest' }).waitFor()
      await settled()
      assert.equal(await firstSeq(), 160)
    })

    it('filters by what is clicked, also deep in the table', async () => {
      await open('#/audit')
      await page.getByRole('button', { name: 'admin' }).nth(20).click()
      await settled()
      assert.equal(new URL(page.url()).hash, '#/audit?user=admin')
      assert.equal(await page.getByRole('cell', { name: 'viewer', exact: true }).count(), 0)
      assert.ok((await page.getByRole('cell', { name: 'admin' }).count()) > 10)
    })

    it('sends a verdict with its reason, and shows what came of it', async () => {
      await open('#/approvals')
      const card = page.getByRole('listitem').filter({ has: page.getByRole('heading', { name: 'files:write_file' }) })
      assert.match(await card.locator('pre').innerText(), /"content": "Dear team,\\n\\nthe figures are in\./)
      await card.getByLabel('Reason').fill('looks odd')
      await card.getByRole('button', { name: 'Reject files:write_file' }).click()
      await page.getByText('“looks odd”').waitFor()
      assert.deepEqual(gateway.verdicts, [{ id: 'a1', decision: 'reject', by: 'owner', reason: 'looks odd' }])
      await page.getByRole('button', { name: 'Approve memory:delete_entities' }).click()
      await page.getByText('Nothing waits for you').waitFor()
    })

    it('tells a person who may not decide that he may not', async () => {
      await open('#/approvals', 'demo-looker')
      await page.getByRole('button', { name: 'Approve files:write_file' }).click()
      await page.getByText('Only the role "approver" and the person who asked').waitFor()
      assert.equal(gateway.verdicts.length, 0)
    })

    it('keeps what it knows while the gateway fails, says since when, and recovers by itself', async () => {
      await open('#/audit')
      await page.getByRole('row').nth(5).waitFor()
      gateway.setBroken(true)
      await poll()
      await page.getByText(/^Not refreshed since \d\d:\d\d:\d\d: /).waitFor()
      assert.ok((await page.getByRole('row').count()) > 50)
      gateway.setBroken(false)
      await poll()
      await page.getByText(/^Not refreshed since/).waitFor({ state: 'detached' })
    })

    it('says what to do where there is nothing yet', async () => {
      await gateway.close()
      gateway = await startFakeGateway({ consoleDir, empty: true })
      await open('#/tools')
      await page.getByText('No server has offered a tool yet').waitFor()
      await page.getByRole('link', { name: 'Audit' }).click()
      await page.getByText('Nothing was called yet').waitFor()
      await page.getByRole('link', { name: 'Approvals' }).click()
      await page.getByText('Nothing waits for you').waitFor()
    })

    it('is used with the keyboard alone', async () => {
      await page.goto(gateway.url)
      await page.getByLabel('Console key').waitFor()
      await page.keyboard.press('Tab')
      await page.keyboard.type('demo-console')
      await page.keyboard.press('Enter')
      await page.getByText('viewer sees').waitFor()
      await page.keyboard.press('Tab')
      await page.keyboard.press('Enter')
      assert.equal(await page.evaluate(() => document.activeElement?.tagName), 'MAIN')
      await page.keyboard.press('Tab')
      await page.keyboard.press('ArrowDown')
      await page.getByText('operator sees').waitFor()
    })

    for (const [colorScheme, width] of [
      ['light', 1200],
      ['dark', 360],
    ] as const)
      it(`has no accessibility fault and no sideways scroll, ${colorScheme}, ${width} wide`, async () => {
        await context.close()
        await openPage({ colorScheme, viewport: { width, height: 800 } })
        await page.goto(gateway.url)
        await page.getByLabel('Console key').waitFor()
        await checkPage('login')
        await logIn('demo-console')
        await page.getByText('viewer sees').waitFor()
        await page.getByText('Details of files:write_file').click()
        await checkPage('tools')
        await page.goto(`${gateway.url}/#/audit`)
        await page.getByRole('row').nth(5).waitFor()
        await checkPage('audit')
        await page.goto(`${gateway.url}/#/approvals`)
        await page.getByText('The exact input').first().waitFor()
        await checkPage('approvals')
        gateway.setBroken(true)
        await page.goto(`${gateway.url}/#/tools?as=admin`)
        await page.getByText('That did not work').waitFor()
        await checkPage('a fault')
      })

    async function openPage(options: Parameters<Browser['newContext']>[0]): Promise<void> {
      strayed = []
      context = await browser.newContext(options)
      page = await context.newPage()
      page.setDefaultTimeout(10_000)
      await page.clock.install()
      page.on('request', (request) => {
        if (!request.url().startsWith(gateway.url)) strayed.push(request.url())
      })
      page.on('console', (message) => {
        if (message.text().includes('Content Security Policy')) strayed.push(message.text())
      })
      page.on('pageerror', (error) => strayed.push(error.message))
    }

    /** Lets the page's own timers fire, without the wait. */
    function poll(): Promise<void> {
      return page.clock.runFor(4000)
    }

    /** What is on the screen answers the latest choice. */
    async function settled(): Promise<void> {
      await page.waitForFunction(() => !document.querySelector('.busy'))
    }

    async function logIn(key: string): Promise<void> {
      await page.getByLabel('Console key').fill(key)
      await page.getByRole('button', { name: 'Log in' }).click()
    }

    async function open(hash: string, key = 'demo-console'): Promise<void> {
      await page.goto(`${gateway.url}/${hash}`)
      await logIn(key)
      await page.getByRole('heading', { level: 1 }).filter({ hasNotText: 'Toolgate' }).waitFor()
    }

    function toolNamed(name: string) {
      return page.locator('li.tool').filter({ has: page.getByRole('heading', { name: new RegExp(`^${name}\\b`) }) })
    }

    async function firstSeq(): Promise<number> {
      const title = await page.locator('td time').first().getAttribute('title')
      return Number(title?.split('record ')[1])
    }

    async function checkPage(where: string): Promise<void> {
      await page.evaluate(axe)
      const { violations } = await page.evaluate<AxeResults>('axe.run()')
      assert.deepEqual(
        violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.target.join(' ')).join(', ')}`),
        [],
        where,
      )
      const overflow = await page.evaluate(
        () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
      )
      assert.ok(overflow <= 0, `${where} scrolls sideways by ${overflow} px`)
    }
  })
