// Takes the pictures of docs/guide/changing-a-policy.md from a gateway that runs the files of that page:
// `npm run build`, then `node --conditions=toolgate-source scripts/take-policy-screenshots.ts`.
import { mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import type { Locator } from 'playwright-core'
import { findChromium, launchChromium } from '../packages/console/test/chromium.ts'
import { loadConfig, startGateway } from '../packages/gateway/src/index.ts'
import { tempFolder } from '../tests/support/gateway.ts'
import { send } from '../tests/support/http.ts'

const KEYS = { OLGA_KEY: 'demo-olga', NIGHTLY_KEY: 'demo-nightly', RESEARCH_KEY: 'demo-rosa', OWNER_KEY: 'demo-owner' }
Object.assign(process.env, KEYS)

const consoleDir = path.resolve(import.meta.dirname, '../packages/gateway/console')
const images = path.resolve(import.meta.dirname, '../docs/images')
const guide = readFileSync(path.resolve(import.meta.dirname, '../docs/guide/changing-a-policy.md'), 'utf8')
const block = (comment: string, nth = 0) =>
  guide.split(`<!-- ${comment} -->\n\`\`\`yaml\n`)[nth + 1]?.split('```')[0] ?? ''

const folder = tempFolder()
const root = realpathSync(folder.path)
const file = path.join(root, 'toolgate.yaml')
for (const part of ['drafts', 'archive', 'papers']) mkdirSync(path.join(root, 'workspace', part), { recursive: true })
writeFileSync(path.join(root, 'workspace/papers/one.md'), 'One.\n')

const config = block('file: toolgate.yaml')
/** The file with a rule of the page at the end of `deny`. */
const withRule = (rule: string) => config.replace('\n\nlabels:', `\n${rule.trimEnd()}\n\nlabels:`)
writeFileSync(file, config)

const gateway = await startGateway(loadConfig(file), { consoleDir })
await gateway.ready
await work(3)
const browser = await launchChromium(findChromium() ?? '')
const page = await browser.newPage({ viewport: { width: 1280, height: 800 }, colorScheme: 'light' })
await page.goto(`${gateway.url}/#/policy`)
await page.getByLabel('Console key').fill(KEYS.OWNER_KEY)
await page.keyboard.press('Enter')

await page.getByRole('button', { name: 'Edit' }).click()
const editor = page.locator('textarea.code')
const before = await editor.inputValue()
await editor.fill(`${before.trimEnd()}\n${block('rule: new.yaml').trimEnd()}\n`)
await page.getByRole('button', { name: 'What would change' }).click()
await page.getByRole('region', { name: 'Calls that would end otherwise' }).waitFor()
await take('policy-what-if', page.locator('h1'), page.locator('.what-if'))
await page.getByRole('button', { name: 'Discard' }).click()

writeFileSync(file, withRule(block('rule: toolgate.yaml')))
await ask('/api/reload', KEYS.OWNER_KEY, {})
await work(1)
await page.reload()
await page.getByText('would have refused 1 call').waitFor()
await take('policy-shadow', page.locator('h1'), page.locator('.policy-line').last())

writeFileSync(file, withRule(block('rule: new.yaml', 1)))
await page.getByRole('button', { name: 'Edit' }).click()
await page.getByRole('button', { name: 'Check the file' }).click()
await page.getByRole('button', { name: 'Apply the file' }).click()
await page.getByRole('link', { name: 'Its record' }).click()
await page.locator('.record .opener').first().click()
await page.getByRole('dialog').getByText('revision 3').waitFor()
await page.screenshot({ path: path.join(images, 'policy-record-light.png') })

await browser.close()
await gateway.close()
folder.remove()

/** What agents do in a day: everybody reads, Olga writes drafts, and the nightly job writes to the archive. */
async function work(days: number): Promise<void> {
  const write = (key: string, to: string) =>
    call(key, 'files:write_file', { path: path.join(root, 'workspace', to), content: 'hello' })
  for (let day = 0; day < days; day++) {
    for (let i = 0; i < 8; i++)
      await call(KEYS.RESEARCH_KEY, 'files:read_text_file', { path: path.join(root, 'workspace/papers/one.md') })
    for (let i = 0; i < 4; i++) await write(KEYS.OLGA_KEY, `drafts/plan-${i}.md`)
    await write(KEYS.NIGHTLY_KEY, `archive/day-${day}.md`)
  }
}

function call(key: string, tool: string, input: object): Promise<unknown> {
  return ask('/api/call', key, { tool, input })
}

async function ask(to: string, key: string, body: object): Promise<unknown> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  return (await send(`${gateway.url}${to}`, { headers, body: JSON.stringify(body) })).json()
}

/** Takes the page from one element to the end of another. */
async function take(name: string, from: Locator, to: Locator): Promise<void> {
  const [first, last] = [await from.boundingBox(), await to.boundingBox()]
  if (!first || !last) throw new Error(`${name}: nothing to see`)
  const y = first.y - 16
  const clip = { x: 0, y, width: 1280, height: last.y + last.height + 16 - y }
  await page.screenshot({ path: path.join(images, `${name}-light.png`), fullPage: true, clip })
}
