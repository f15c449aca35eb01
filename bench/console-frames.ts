import { loadavg } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import type { CDPSession, Page } from 'playwright-core'
import { logIn, setStage } from '../packages/console/test/browser.ts'
import { findChromium } from '../packages/console/test/chromium.ts'
import { startFakeGateway } from '../packages/console/test/fake-gateway.ts'
import { digits, median, printTable } from './lib.ts'

/**
 * How many frames a second each page draws while records arrive, and the longest one. The floor is an empty page of the
 * same browser, in turn, while as many records are made.
 */
const { values } = parseArgs({
  strict: false,
  options: {
    rounds: { type: 'string', default: '3' },
    only: { type: 'string', default: '' },
    rate: { type: 'string', default: '200' },
    seconds: { type: 'string', default: '4' },
    records: { type: 'string', default: '10000' },
  },
})
const rounds = Number(values.rounds)
const rate = Number(values.rate)
const seconds = Number(values.seconds)
const recordCount = Number(values.records)
const TICK_MS = 10

const PAGES = [
  ['overview', '.figure'],
  ['live', 'tr.record'],
  ['calls', 'tr.record'],
  ['approvals', '.approval'],
] as const

interface Frames {
  readonly arrived: number
  readonly perSecond: number
  readonly longestMs: number
  /** CPU milliseconds of the page's main thread in a second. */
  readonly busyMs: number
  readonly scriptMs: number
  readonly layoutMs: number
}

const executablePath = findChromium()
if (executablePath === undefined) process.exit(2)
const stage = await setStage(executablePath)
const gateway = await startFakeGateway({ consoleDir: stage.consoleDir, recordCount })
try {
  const { context, page, strayed } = await stage.open({ viewport: { width: 1280, height: 900 } })
  const session = await context.newCDPSession(page)
  await session.send('Performance.enable', { timeDomain: 'threadTicks' })
  await page.goto(gateway.url)
  await logIn(page)
  await page.locator('h1').first().waitFor()
  const rows: string[][] = []
  for (const [address, ready] of PAGES.filter(([name]) => name.startsWith(String(values.only)))) {
    const floor: Frames[] = []
    const shown: Frames[] = []
    for (let round = 0; round < rounds; round++) {
      await page.goto('about:blank')
      floor.push(await measure(page, session))
      await page.goto(`${gateway.url}/#/${address}`)
      await page.locator(ready).first().waitFor()
      await page.getByText('Live', { exact: true }).last().waitFor()
      shown.push(await measure(page, session))
    }
    rows.push(rowOf(address, shown, floor))
  }
  printTable(
    `Frames while ${rate} records a second arrive (load ${loadavg()[0]?.toFixed(1)})`,
    [
      'page',
      'records/s',
      'frames/s',
      'lowest',
      'floor',
      'longest ms',
      'floor ms',
      'busy ms/s',
      'script',
      'style, layout',
    ],
    rows,
  )
  if (strayed.length > 0) console.log(strayed)
} finally {
  await stage.close()
  await gateway.close()
}

function rowOf(address: string, shown: readonly Frames[], floor: readonly Frames[]): string[] {
  const of = (frames: readonly Frames[], field: keyof Frames): string => digits(median(frames.map((one) => one[field])))
  return [
    address,
    of(shown, 'arrived'),
    of(shown, 'perSecond'),
    digits(Math.min(...shown.map(({ perSecond }) => perSecond))),
    of(floor, 'perSecond'),
    digits(Math.max(...shown.map(({ longestMs }) => longestMs))),
    digits(Math.max(...floor.map(({ longestMs }) => longestMs))),
    of(shown, 'busyMs'),
    of(shown, 'scriptMs'),
    of(shown, 'layoutMs'),
  ]
}

/** Draws frames while records arrive, after a second in which the page settles. */
async function measure(page: Page, session: CDPSession): Promise<Frames> {
  const isOver = new AbortController()
  const arriving = arrive(isOver.signal)
  await delay(1000)
  const before = await metricsOf(session)
  const drawn = await page.evaluate(drawFrames, seconds * 1000)
  const after = await metricsOf(session)
  isOver.abort()
  const perSecond = (name: string): number =>
    (((after.get(name) ?? 0) - (before.get(name) ?? 0)) * 1000) / (drawn.ms / 1000)
  return {
    arrived: await arriving,
    perSecond: drawn.frames / (drawn.ms / 1000),
    longestMs: drawn.longestMs,
    busyMs: perSecond('TaskDuration'),
    scriptMs: perSecond('ScriptDuration'),
    layoutMs: perSecond('LayoutDuration') + perSecond('RecalcStyleDuration'),
  }
}

/** Adds records one after another at the rate, and makes up for a late timer. Returns the rate that it was. */
async function arrive(signal: AbortSignal): Promise<number> {
  const startedMs = performance.now()
  let sent = 0
  while (!signal.aborted) {
    const due = Math.floor(((performance.now() - startedMs) * rate) / 1000) - sent
    if (due > 0) gateway.record(due)
    sent += due
    await delay(TICK_MS)
  }
  return sent / ((performance.now() - startedMs) / 1000)
}

async function metricsOf(session: CDPSession): Promise<ReadonlyMap<string, number>> {
  const { metrics } = await session.send('Performance.getMetrics')
  return new Map(metrics.map(({ name, value }) => [name, value]))
}

/** Counts frames by the times that the browser gives them. */
function drawFrames(forMs: number): Promise<{ frames: number; ms: number; longestMs: number }> {
  return new Promise((resolve) => {
    let firstMs = 0
    let lastMs = 0
    let frames = 0
    let longestMs = 0
    const draw = (nowMs: number): void => {
      if (firstMs === 0) firstMs = nowMs
      else {
        frames++
        longestMs = Math.max(longestMs, nowMs - lastMs)
      }
      lastMs = nowMs
      if (nowMs - firstMs >= forMs) resolve({ frames, ms: nowMs - firstMs, longestMs })
      else requestAnimationFrame(draw)
    }
    requestAnimationFrame(draw)
  })
}
