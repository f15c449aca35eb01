import type { Page } from 'playwright-core'

/** A page of the console, and a part of it that is there once it shows its data. */
export interface Shown {
  readonly address: string
  readonly ready: string
}

export const PAGES: readonly Shown[] = [
  { address: 'overview?period=24h', ready: '.figure' },
  { address: 'live', ready: 'tr.record' },
  { address: 'calls', ready: 'tr.record' },
  { address: 'calls?outcome=failed', ready: 'tr.record' },
  { address: 'approvals', ready: '.approval' },
  { address: 'policy', ready: '.policy-lines, .other-clauses' },
  { address: 'tools?as=user-5', ready: '.listing-rows > li' },
  { address: 'tool?id=server07:read_thing_42&as=user-5', ready: '.sheet dl.facts' },
  { address: 'people?view=matrix', ready: '.matrix .cell' },
  { address: 'people?view=matrix&open=group+group1', ready: '.matrix .tool-line' },
  { address: 'people?view=keys', ready: 'table tbody tr' },
  { address: 'people', ready: 'tr.record' },
  { address: 'runs', ready: 'tr.record' },
  { address: 'servers', ready: 'table tbody tr' },
  { address: 'servers?server=server07', ready: '.server-details' },
]

export interface Fetched {
  readonly path: string
  readonly ms: number
  readonly bytes: number
}

export interface Measured {
  /** From the navigation to the frame that shows the data. */
  readonly readyMs: number
  readonly fetched: readonly Fetched[]
  readonly nodes: number
  readonly heightPx: number
}

/** Opens a page as a new document, with the files in the browser's cache. */
export async function openFresh(page: Page, url: string, { address, ready }: Shown): Promise<Measured> {
  await page.goto('about:blank')
  const fetched = recordFetches(page)
  await page.goto(`${url}/#/${address}`, { waitUntil: 'commit' })
  const readyMs = await page.evaluate(untilShown, ready)
  return { readyMs, ...(await sizeOf(page)), fetched: await fetched() }
}

/** Opens a page from another page of the console. */
export async function openFromPage(page: Page, { address, ready }: Shown): Promise<Measured> {
  const fetched = recordFetches(page)
  const readyMs = await page.evaluate(movedTo, { address, ready })
  return { readyMs, ...(await sizeOf(page)), fetched: await fetched() }
}

async function sizeOf(page: Page): Promise<{ nodes: number; heightPx: number }> {
  return page.evaluate(() => ({
    nodes: document.querySelectorAll('*').length,
    heightPx: document.documentElement.scrollHeight,
  }))
}

/** Returns a function that returns the answers of the API since, after those under way have come. */
function recordFetches(page: Page): () => Promise<readonly Fetched[]> {
  const found: Promise<Fetched>[] = []
  const record = (response: import('playwright-core').Response): void => {
    const { pathname, search } = new URL(response.url())
    if (!pathname.startsWith('/api/')) return
    found.push(
      response.body().then(
        (body) => {
          const { requestStart, responseEnd } = response.request().timing()
          return { path: `${pathname}${search}`, ms: responseEnd - requestStart, bytes: body.byteLength }
        },
        () => ({ path: pathname, ms: Number.NaN, bytes: 0 }),
      ),
    )
  }
  page.on('response', record)
  return async () => {
    await page.waitForTimeout(300)
    page.off('response', record)
    return Promise.all(found)
  }
}

function movedTo({ address, ready }: Shown): Promise<number> {
  const startedMs = performance.now()
  location.hash = `#/${address}`
  return new Promise((resolve) => {
    const look = (): void => {
      const ms = performance.now() - startedMs
      if (document.querySelector(ready) || ms > 30_000) resolve(ms)
      else requestAnimationFrame(look)
    }
    requestAnimationFrame(look)
  })
}

/** Resolves with the milliseconds from the navigation to the frame in which a part is there. */
export function untilShown(selector: string): Promise<number> {
  return new Promise((resolve) => {
    const look = (): void => {
      if (document.querySelector(selector) || performance.now() > 30_000) resolve(performance.now())
      else requestAnimationFrame(look)
    }
    requestAnimationFrame(look)
  })
}
