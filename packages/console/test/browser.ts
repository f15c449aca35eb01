import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { AxeResults } from 'axe-core'
import type { Browser, BrowserContext, Locator, Page } from 'playwright-core'
import { build } from 'vite'
import { launchChromium } from './chromium.ts'

const ROOT = join(import.meta.dirname, '..')
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** The built console, and a browser. */
export interface Stage {
  readonly consoleDir: string
  open(options: Parameters<Browser['newContext']>[0]): Promise<Seat>
  close(): Promise<void>
}

/** A page, and its forbidden actions. */
export interface Seat {
  readonly context: BrowserContext
  readonly page: Page
  /** Requests to other hosts, violations of the Content-Security-Policy, and uncaught errors. */
  readonly strayed: string[]
}

/** Builds the console into a new folder. */
export async function buildConsole(): Promise<string> {
  const consoleDir = mkdtempSync(join(tmpdir(), 'toolgate-console-'))
  await build({
    root: ROOT,
    configFile: join(ROOT, 'vite.config.ts'),
    logLevel: 'silent',
    build: { outDir: consoleDir, reportCompressedSize: false },
  })
  return consoleDir
}

export async function setStage(executablePath: string): Promise<Stage> {
  const consoleDir = await buildConsole()
  const browser = await launchChromium(executablePath)
  return {
    consoleDir,
    async open(options) {
      const strayed: string[] = []
      const context = await browser.newContext(options)
      const page = await context.newPage()
      page.setDefaultTimeout(15_000)
      let own: string | undefined
      page.on('request', (request) => {
        const { origin, protocol } = new URL(request.url())
        if (protocol === 'data:') return
        own ??= origin
        if (origin !== own) strayed.push(request.url())
      })
      page.on('console', (message) => {
        if (/Content Security Policy|violat/i.test(message.text())) strayed.push(message.text())
      })
      page.on('pageerror', (error) => strayed.push(error.message))
      return { context, page, strayed }
    },
    async close() {
      await browser.close()
      rmSync(consoleDir, { recursive: true })
    },
  }
}

export async function logIn(page: Page, key = 'demo-console'): Promise<void> {
  await page.getByLabel('Console key').fill(key)
  await page.getByRole('button', { name: 'Log in' }).click()
}

/** Presses a button of an approval, and again as long as the console says that the page has just moved. */
export async function press(button: Locator): Promise<void> {
  const ignored = button.page().locator('.moved-note').filter({ hasText: 'press again' })
  do await button.click()
  while (await ignored.first().isVisible())
}

/** Asserts that axe finds no fault, and that the page does not scroll sideways. */
export async function checkPage(page: Page, where: string): Promise<void> {
  assert.deepEqual(await findPageFaults(page), [], where)
}

/** Returns what axe finds, and whether the page scrolls sideways. Targets are at least 24 pixels large, or have space around them. */
export async function findPageFaults(page: Page): Promise<readonly string[]> {
  await page.evaluate(axe)
  // Half-way between two colours a text is neither.
  await page.evaluate(async () => {
    const ending = document.getAnimations().filter((one) => Number.isFinite(one.effect?.getComputedTiming().endTime))
    await Promise.allSettled(ending.map((one) => one.finished))
  })
  const { violations } = await page.evaluate<AxeResults>("axe.run({ rules: { 'target-size': { enabled: true } } })")
  const overflow = await page.evaluate(
    () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
  )
  return [
    ...violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.target.join(' ')).join(', ')}`),
    ...(overflow > 0 ? [`it scrolls sideways by ${overflow} px`] : []),
  ]
}
