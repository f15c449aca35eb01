// Takes the pictures of the README from a running quickstart: `node scripts/take-screenshots.ts [url]`.
import { chromium } from 'playwright-core'

const url = process.argv[2] ?? 'http://127.0.0.1:8787'
const folder = new URL('../docs/images/', import.meta.url).pathname
const browser = await chromium.launch({
  executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-sync', '--no-first-run'],
})
for (const colorScheme of ['light', 'dark'] as const) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 860 }, deviceScaleFactor: 1, colorScheme })
  await page.goto(url)
  await page.getByLabel(/key/i).fill('demo-console')
  await page.keyboard.press('Enter')
  for (const name of ['tools', 'audit', 'approvals']) {
    await page.goto(`${url}/#/${name}`)
    await page.waitForTimeout(1500)
    await page.screenshot({ path: `${folder}console-${name}-${colorScheme}.png` })
  }
  await page.close()
}
await browser.close()
