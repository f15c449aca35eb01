import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { RunOptions } from 'axe-core'
import type { Browser, BrowserContext, Locator, Page } from 'playwright-core'
import { launchChromium } from './chromium.ts'

const ROOT = join(import.meta.dirname, '../../..')
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
/** Only violations are described in full, which is most of the work of axe. */
const EVERY_RULE: RunOptions = { resultTypes: ['violations'], rules: { 'target-size': { enabled: true } } }
/** The rules whose answer depends on colours. */
export const COLOUR_RULES: RunOptions = {
  resultTypes: ['violations'],
  runOnly: ['color-contrast', 'link-in-text-block'],
}

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

/** Returns the folder of the built console, which is built again only if its sources have changed. */
export function buildConsole(): string {
  execFileSync(process.execPath, [join(ROOT, 'scripts/prepare.js'), '--console', '--no-install'])
  return join(ROOT, 'packages/gateway/console')
}

export async function setStage(executablePath: string): Promise<Stage> {
  const consoleDir = buildConsole()
  const browser = await launchChromium(executablePath)
  return {
    consoleDir,
    async open(options) {
      const strayed: string[] = []
      const context = await browser.newContext({ reducedMotion: 'reduce', ...options })
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
    close: () => browser.close(),
  }
}

/** Opens an address of the console as a person who has logged in before. */
export async function enter(page: Page, url: string, key = 'demo-console'): Promise<void> {
  const { origin } = new URL(url)
  const answer = await page.context().request.post(`${origin}/api/login`, { headers: { origin }, data: { key } })
  assert.ok(answer.ok(), await answer.text())
  await page.goto(url)
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

/** The folder for pictures. Without it, no picture is taken. */
const { TOOLGATE_SCREENSHOTS: pictures } = process.env

/** Asserts the same in both colour schemes, at each width. The page is then as it was. */
export async function checkForms(page: Page, where: string, widths: readonly number[] = [1440, 390]): Promise<void> {
  const size = page.viewportSize() ?? { width: 1280, height: 900 }
  const faults: string[] = []
  for (const width of widths)
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.setViewportSize({ ...size, width })
      await page.emulateMedia({ colorScheme })
      const form = `${colorScheme}-${width}`
      // Only the answers about colours depend on the scheme.
      const found = await findPageFaults(page, colorScheme === 'dark' ? COLOUR_RULES : undefined)
      faults.push(...found.map((fault) => `${where}, ${form}: ${fault}`))
      await takePicture(page, `${where} ${form}`)
    }
  await page.setViewportSize(size)
  await page.emulateMedia({ colorScheme: null })
  assert.deepEqual(faults, [])
}

/** Takes a picture of the page where somebody wants one. */
export async function takePicture(page: Page, name: string, fullPage = true): Promise<void> {
  if (pictures === undefined) return
  await page.screenshot({ path: join(pictures, `${name.replaceAll(' ', '_')}.png`), fullPage })
}

/** Returns what axe finds, and whether the page scrolls sideways. Targets are at least 24 pixels large, or have space around them. */
export async function findPageFaults(page: Page, rules = EVERY_RULE): Promise<readonly string[]> {
  const found = await findAxeFaults(page, rules)
  const overflow = await page.evaluate(
    () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
  )
  return overflow > 0 ? [...found, `it scrolls sideways by ${overflow} px`] : found
}

async function findAxeFaults(page: Page, options: RunOptions): Promise<readonly string[]> {
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(axe)
  return page.evaluate(async (given) => {
    // Half-way between two colours a text is neither.
    const ending = document.getAnimations().filter((one) => Number.isFinite(one.effect?.getComputedTiming().endTime))
    await Promise.allSettled(ending.map((one) => one.finished))
    const { axe: loaded } = globalThis as unknown as { axe: typeof import('axe-core') }
    const { violations } = await loaded.run(given)
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.target.join(' ')).join(', ')}`)
  }, options)
}
