import { mkdtempSync, rmSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { logIn, setStage } from '../packages/console/test/browser.ts'
import { findChromium } from '../packages/console/test/chromium.ts'
import {
  AGENT_KEY,
  askApprovals,
  LARGE,
  makeWorld,
  PERSON_KEY,
  TENANT_PERSON_KEY,
} from '../tests/support/large-world.ts'
import { printRoutes } from './console/routes.ts'
import { openFresh, openFromPage, PAGES } from './console/pages.ts'
import { digits, median, printTable } from './lib.ts'
import { freePort, startServer } from './server-process.ts'

/** How long each page of the console takes with much data, what it fetches, and how long the gateway stands still for it. */
const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    only: { type: 'string', default: '' },
    tenant: { type: 'boolean', default: false },
    calls: { type: 'string', default: String(LARGE.calls) },
    detail: { type: 'boolean', default: false },
    prof: { type: 'string' },
    phases: { type: 'string', default: 'routes,pages' },
  },
})
const rounds = Number(values.rounds)
const size = { ...LARGE, calls: Number(values.calls) }
const BUDGET_MS = 300
const SLOWER = 4
const SLOW_BUDGET_MS = 1000

const executablePath = findChromium()
if (executablePath === undefined) process.exit(2)
const folder = mkdtempSync(join(tmpdir(), 'toolgate-bench-'))
const startedMs = performance.now()
const world = await makeWorld(folder, size)
const stage = await setStage(executablePath)
const port = await freePort()
const prof = values.prof === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${values.prof}`]
const args = ['--conditions=toolgate-source', ...prof, fileURLToPath(new URL('console/serve.ts', import.meta.url))]
const env = { CONFIG: world.configFile, PORT: String(port), CONSOLE: stage.consoleDir }
const gateway = await startServer(
  { args, port, env },
  { method: 'tools/list', params: {}, key: AGENT_KEY, expect: '"server39__read_thing_249"' },
)
try {
  await askApprovals(gateway.origin, size)
  console.log(`prepared in ${digits((performance.now() - startedMs) / 1000)} s; load ${loadavg()[0]?.toFixed(1)}`)
  const personKey = values.tenant ? TENANT_PERSON_KEY : PERSON_KEY
  await gateway.longestDelayMs()
  if (values.phases.includes('routes')) await printRoutes(gateway, personKey, rounds)
  if (values.phases.includes('pages')) await printPages(personKey)
} finally {
  await stage.close()
  await gateway.stop()
  await world.close()
  rmSync(folder, { recursive: true, force: true })
}

async function printPages(personKey: string): Promise<void> {
  const { context, page, strayed } = await stage.open({ viewport: { width: 1280, height: 900 } })
  const processor = await context.newCDPSession(page)
  page.setDefaultTimeout(120_000)
  await page.goto(`${gateway.origin}/#/replicas`)
  await logIn(page, personKey)
  await page.locator('h1').first().waitFor()
  await page.waitForTimeout(1000)
  const rows: string[][] = []
  for (const shown of PAGES.filter(({ address }) => address.startsWith(values.only))) {
    const fresh = []
    const slow = []
    const moved = []
    await gateway.longestDelayMs()
    const first = await openFresh(page, gateway.origin, shown)
    const firstStallMs = await gateway.longestDelayMs()
    for (let round = 0; round < rounds; round++) fresh.push(await openFresh(page, gateway.origin, shown))
    await processor.send('Emulation.setCPUThrottlingRate', { rate: SLOWER })
    for (let round = 0; round < rounds; round++) slow.push(await openFresh(page, gateway.origin, shown))
    await processor.send('Emulation.setCPUThrottlingRate', { rate: 1 })
    for (let round = 0; round < rounds; round++) {
      await page.goto('about:blank')
      await page.goto(`${gateway.origin}/#/replicas`)
      await page.locator('h1').first().waitFor()
      await page.waitForTimeout(300)
      moved.push(await openFromPage(page, shown))
    }
    const stallMs = await gateway.longestDelayMs()
    const last = fresh.at(-1) ?? first
    rows.push([
      shown.address,
      digits(first.readyMs),
      digits(median(fresh.map(({ readyMs }) => readyMs))),
      digits(median(moved.map(({ readyMs }) => readyMs))),
      `${BUDGET_MS}`,
      digits(median(slow.map(({ readyMs }) => readyMs))),
      `${SLOW_BUDGET_MS}`,
      String(last.fetched.length),
      `${Math.round(last.fetched.reduce((sum, { bytes }) => sum + bytes, 0) / 1000)}`,
      String(last.nodes),
      String(last.heightPx),
      digits(firstStallMs),
      digits(stallMs),
    ])
    if (values.detail) {
      console.log(`\n${shown.address}: ready after ${digits(last.readyMs)} ms`)
      for (const { path, ms, bytes } of last.fetched)
        console.log(`  ${digits(ms).padStart(7)} ms ${String(bytes).padStart(9)} B  ${path.slice(0, 120)}`)
    }
  }
  printTable(
    `Pages with ${size.servers * size.toolsOfServer} tools, ${size.callers} callers, ${size.calls} calls a day, ${size.approvals} approvals (load ${loadavg()[0]?.toFixed(1)})`,
    [
      'page',
      'first ms',
      'fresh ms',
      'from a page ms',
      'budget',
      `${SLOWER} x slower ms`,
      'budget',
      'requests',
      'kB',
      'nodes',
      'height px',
      'first stall ms',
      'stall ms',
    ],
    rows,
  )
  if (strayed.length > 0) console.log(strayed)
}
