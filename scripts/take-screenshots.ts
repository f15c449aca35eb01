// Takes the pictures of the README from a running quickstart, after some calls that are worth looking at:
// `node --conditions=toolgate-source scripts/take-screenshots.ts [url]`.
import { setTimeout as sleep } from 'node:timers/promises'
import { findChromium, launchChromium } from '../packages/console/test/chromium.ts'
import { KEYS, type Who } from '../tests/support/keys.ts'
import { toMessage } from '../tests/support/rpc.ts'

const url = process.argv[2] ?? 'http://127.0.0.1:8787'
const folder = new URL('../docs/images/', import.meta.url).pathname

const CALLS: readonly (readonly [Who, string, object])[] = [
  ['viewer', 'files__list_directory', { path: '.' }],
  ['viewer', 'everything__echo', { message: 'hello' }],
  ['operator', 'everything__get-sum', { a: 2, b: 40 }],
  ['viewer', 'files__move_file', { source: 'notes.txt', destination: 'old.txt' }],
  ['admin', 'memory__read_graph', {}],
  ['operator', 'files__read_text_file', { path: 'notes.txt', head: 1, tail: 1 }],
  ['viewer', 'memory__search_nodes', { query: 'vera' }],
  ['viewer', 'everything__get-structured-content', { location: 'Chicago' }],
  ['operator', 'everything__get-tiny-image', {}],
]

for (let round = 0; round < 12; round++)
  for (const [who, name, args] of CALLS.slice(round % 3)) {
    await call(who, name, args)
    await sleep(120 + ((round * 37) % 5) * 90)
  }
await call('operator', 'files__write_file', { path: 'notes.txt', content: 'Dear team,\n\nthe figures are in.\n' })

const browser = await launchChromium(findChromium() ?? '')
for (const [name, colorScheme, address] of [
  ['overview', 'light', 'overview?period=1h'],
  ['calls', 'light', 'calls?outcome=refused'],
  ['tools', 'light', 'tools?as=operator'],
  ['tool', 'light', 'tool?id=files:write_file&as=operator'],
  ['live', 'dark', 'live'],
  ['approvals', 'light', 'approvals'],
  ['people', 'light', 'people?view=matrix&open=group+lab'],
] as const) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 }, deviceScaleFactor: 1, colorScheme })
  await page.goto(url)
  await page.getByLabel(/key/i).fill(KEYS.console)
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { level: 1 }).filter({ hasNotText: 'Toolgate' }).waitFor()
  await page.goto(`${url}/#/${address}`)
  await page.waitForTimeout(1500)
  await page.screenshot({ path: `${folder}console-${name}-${colorScheme}.png` })
  await page.close()
}
await browser.close()

async function call(who: Who, name: string, args: object): Promise<void> {
  const { headers, body } = toMessage('2026-07-28', 'tools/call', { name, arguments: args })
  const authorization = `Bearer ${KEYS[who]}`
  const answer = await fetch(`${url}/mcp`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...headers,
      authorization,
    },
    body: JSON.stringify(body),
  })
  await answer.text()
}
