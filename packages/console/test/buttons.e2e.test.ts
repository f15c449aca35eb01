import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { Page } from 'playwright-core'
import { logIn } from './browser.ts'
import { measureContrasts } from './contrast.ts'
import { startFakeGateway } from './fake-gateway.ts'
import { describeConsole } from './suite.ts'

const PAGES = [
  '#/tools?as=viewer',
  '#/tool?id=memory:open_nodes&as=admin',
  '#/live?user=admin',
  '#/approvals',
  '#/people?view=matrix&open=group+web',
]
const STATES: readonly (readonly [string, Readonly<Record<string, string>>])[] = [
  ['at rest', {}],
  ['pressed', { 'aria-pressed': 'true' }],
  ['disabled', { disabled: '' }],
  ['switched off', { 'aria-disabled': 'true' }],
  ['pressed and switched off', { 'aria-pressed': 'true', 'aria-disabled': 'true' }],
]

describeConsole('the buttons', (stage) => {
  for (const colorScheme of ['light', 'dark'] as const)
    it(`are readable in every state, ${colorScheme}: contrast of at least 4.5`, async () => {
      const gateway = await stage.keep(startFakeGateway({ consoleDir: stage.consoleDir }))
      const { page } = await stage.open({
        colorScheme,
        reducedMotion: 'reduce',
        viewport: { width: 1280, height: 900 },
      })
      await page.goto(gateway.url)
      const seen = new Set<string>()
      const faults: string[] = []
      await page.getByLabel('Console key').waitFor()
      for (const kind of await markKinds(page, seen)) faults.push(...(await faultsOf(page, kind)))
      await page.evaluate(() => document.querySelector('[data-specimen]')?.remove())
      await logIn(page)
      for (const hash of PAGES) {
        await page.goto(`${gateway.url}/${hash}`)
        await page.locator('main button').first().waitFor()
        await page.locator('canvas, .request, .matrix, .tab, .tool').first().waitFor()
        for (const kind of await markKinds(page, seen)) faults.push(...(await faultsOf(page, kind)))
      }
      assert.deepEqual(faults, [])
      for (const kind of ['main', 'quiet', 'chip allow', 'approve', 'reject', 'fold', 'tab', 'choice'])
        assert.ok(
          [...seen].some((one) => one.includes(kind)),
          `no button of the kind "${kind}" was measured`,
        )
    })

  /** Marks one button of each class in each kind of row. */
  async function markKinds(page: Page, seen: Set<string>): Promise<readonly string[]> {
    const kinds = await page.evaluate(() =>
      [...document.querySelectorAll('button')].map((button) => {
        const pressed = button.hasAttribute('aria-pressed') ? ' that can be pressed' : ''
        const kind = `${button.parentElement?.className ?? ''} > ${button.className}${pressed}`
        button.dataset['kind'] = kind
        return kind
      }),
    )
    const fresh = [...new Set(kinds)].filter((kind) => !seen.has(kind))
    for (const kind of fresh) seen.add(kind)
    return fresh
  }

  async function faultsOf(page: Page, kind: string): Promise<readonly string[]> {
    const faults: string[] = []
    for (const [state, attributes] of STATES) {
      if ('aria-pressed' in attributes && !kind.endsWith('that can be pressed')) continue
      await showSpecimen(page, kind, attributes)
      for (const pointer of ['away', 'over']) {
        if (pointer === 'over') await page.locator('[data-specimen]').hover({ force: true })
        else await page.mouse.move(0, 899)
        for (const { text, ratio } of await measureContrasts(page))
          if (ratio < 4.5) faults.push(`${kind}, ${state}, pointer ${pointer}, "${text}": ${ratio.toFixed(1)}`)
      }
    }
    return faults
  }

  /** Puts a copy of a button beside it, with the same styles but without the state of the page. */
  async function showSpecimen(page: Page, kind: string, attributes: Readonly<Record<string, string>>): Promise<void> {
    await page.evaluate(
      ([wanted, given]) => {
        document.querySelector('[data-specimen]')?.remove()
        const button = [...document.querySelectorAll('button')].find(({ dataset }) => dataset['kind'] === wanted)
        const copy = button?.cloneNode(true) as HTMLElement
        delete copy.dataset['kind']
        copy.dataset['specimen'] = ''
        for (const name of ['aria-pressed', 'aria-disabled', 'disabled']) copy.removeAttribute(name)
        for (const [name, value] of Object.entries(given)) copy.setAttribute(name, value)
        button?.after(copy)
        // Fully visible in every row.
        Object.assign(copy.style, { position: 'fixed', zIndex: '9', left: '300px', top: '300px', clipPath: 'none' })
      },
      [kind, attributes] as const,
    )
  }
})
