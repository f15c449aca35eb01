import assert from 'node:assert/strict'
import { beforeEach, it } from 'node:test'
import type { Locator, Page } from 'playwright-core'
import { enter } from './browser.ts'
import { type FakeGateway, startFakeGateway } from './fake-gateway.ts'
import { describeConsole } from './suite.ts'

const FIRST = 'Approve files:write_file'
const MOVED = 'The page has just moved. Nothing was sent: press again.'

describeConsole('approvals under the pointer', (stage) => {
  let gateway: FakeGateway
  let page: Page
  beforeEach(async () => {
    gateway = await stage.keep(startFakeGateway({ consoleDir: stage.consoleDir }))
    ;({ page } = await stage.open({ viewport: { width: 1280, height: 900 } }))
  })

  it('stay where they are when requests arrive, which a bar announces', async () => {
    await open()
    const button = page.getByRole('button', { name: FIRST })
    await button.hover()
    const places = await placesOf()
    gateway.ask('a8')
    gateway.ask('a9')
    await page.getByRole('status').getByText('2 new requests').waitFor()
    const show = page.getByRole('button', { name: '2 new requests – show' })
    await show.waitFor()
    assert.deepEqual(await placesOf(), places)
    await page.getByRole('link', { name: /^Approvals 4/ }).waitFor()
    await show.click()
    await page.locator('.request').nth(3).waitFor()
    assert.deepEqual((await placesOf()).slice(0, 3), places)
    assert.deepEqual(await page.locator('.request .opener').allInnerTexts(), [
      'files:write_file',
      'memory:delete_entities',
      'files:move_file',
      'files:move_file',
    ])
  })

  for (const delay of [0, 80, 200, 400])
    it(`are decided one at a time: a second click ${delay} ms after the first decides nothing`, async () => {
      await open()
      const places = await placesOf()
      const { x, y } = await armed(page.getByRole('button', { name: FIRST }))
      await page.mouse.click(x, y)
      await page.waitForTimeout(delay)
      await page.mouse.click(x, y)
      await page.getByText('The call can run once.').waitFor()
      assert.deepEqual(await placesOf(), places)
      // Nothing can be pressed where the button was, even after a long wait.
      await page.waitForTimeout(600)
      await page.mouse.click(x, y)
      assert.deepEqual(
        gateway.verdicts.map(({ id, decision }) => [id, decision]),
        [['a1', 'approve']],
      )
    })

  for (const [how, press] of [
    ['a click', async (button) => page.mouse.click(...(await middleOf(button)))],
    ['the Enter key', async () => page.keyboard.press('Enter')],
    ['the space bar', async () => page.keyboard.press('Space')],
  ] as readonly (readonly [string, (button: Locator) => Promise<void>])[])
    it(`ignore ${how} within 500 ms of a move, and say why`, async () => {
      await page.clock.install()
      await open()
      const button = page.getByRole('button', { name: FIRST })
      await armed(button)
      await button.focus()
      await page.clock.pauseAt(Date.now() + 60_000)
      await moveBy(40)
      await press(button)
      await page.locator('.moved-note').getByText(MOVED).waitFor()
      await page.getByRole('status').getByText(MOVED).waitFor()
      assert.equal(await button.getAttribute('aria-disabled'), 'true')
      assert.ok(await button.evaluate((element) => element === document.activeElement))
      await page.clock.runFor(480)
      await press(button)
      assert.deepEqual(gateway.verdicts, [])
      await page.clock.runFor(520)
      await armed(button)
      await press(button)
      await page.clock.resume()
      await page.getByText('The call can run once.').waitFor()
      assert.equal(gateway.verdicts.length, 1)
    })

  it('are disabled by every kind of move: content above, size, scrolling and a narrower window', async () => {
    await page.clock.install()
    await page.setViewportSize({ width: 1280, height: 900 })
    await open()
    let button = page.getByRole('button', { name: FIRST })
    const moves: readonly (() => Promise<unknown>)[] = [
      () => moveBy(30),
      () =>
        page.evaluate(() => {
          const input = document.querySelector<HTMLElement>('.approval pre')
          if (input) input.style.fontSize = '19px'
        }),
      // The next request has its buttons at the same place, or nearly.
      async () => {
        await page.locator('.request .opener').nth(1).click()
        await page.getByRole('button', { name: 'Approve memory:delete_entities' }).waitFor()
        button = page.getByRole('button', { name: 'Approve memory:delete_entities' })
      },
      () => page.setViewportSize({ width: 1230, height: 900 }),
    ]
    for (const move of moves) {
      await page.clock.resume()
      await armed(button)
      await page.clock.pauseAt((await page.evaluate(() => Date.now())) + 5000)
      assert.equal(await button.getAttribute('aria-disabled'), 'false')
      await move()
      await page.mouse.click(...(await middleOf(button)))
      await page.locator('.moved-note').waitFor()
      await page.clock.runFor(6000)
    }
    assert.deepEqual(gateway.verdicts, [])
  })

  it('are disabled as another request opens whose buttons are at the same place', async () => {
    await page.clock.install()
    await open()
    gateway.ask('b1')
    gateway.ask('b2')
    await page.getByRole('button', { name: '2 new requests – show' }).click()
    await page.locator('.request .opener').nth(2).click()
    const { x, y } = await armed(page.getByRole('button', { name: 'Approve files:move_file' }))
    await page.clock.pauseAt((await page.evaluate(() => Date.now())) + 5000)
    await page.locator('.request .opener').nth(3).click()
    await page.locator('.approval[data-id=b2]').waitFor()
    await page.mouse.click(x, y)
    await page.locator('.moved-note').getByText(MOVED).waitFor()
    assert.deepEqual(gateway.verdicts, [])
  })

  it('keep their result in place and the focus in the card, until the person clears them', async () => {
    await open()
    const reject = page.getByRole('button', { name: 'Reject files:write_file' })
    await armed(reject)
    await reject.focus()
    await page.keyboard.press('Enter')
    await page.getByText('The call will not run.').waitFor()
    assert.ok(await page.evaluate(() => document.activeElement?.closest('.approval') !== null))
    await page.getByRole('button', { name: 'Clear 1 finished' }).click()
    await page.locator('.request').getByText('files:write_file').waitFor({ state: 'detached' })
    assert.equal(await page.locator('.request').getByText('memory:delete_entities').count(), 1)
  })

  async function open(): Promise<void> {
    await enter(page, `${gateway.url}/#/approvals`)
    await page.locator('.request').nth(1).waitFor()
    await page.locator('.approval').waitFor()
    await page.getByText('Live', { exact: true }).last().waitFor()
  }

  /** Adds content above the cards, like a strip about a halt. */
  async function moveBy(px: number): Promise<void> {
    await page.evaluate((height) => {
      const strip = document.createElement('div')
      strip.style.height = `${height}px`
      document.querySelector('main')?.prepend(strip)
    }, px)
  }

  /** The places of the open request and of all rows. */
  async function placesOf(): Promise<readonly unknown[]> {
    return page.locator('.detail, .request').evaluateAll((all) =>
      all
        .toSorted((a, b) => Number(b.matches('.detail')) - Number(a.matches('.detail')))
        .map((element) => {
          const { left, top, width, height } = element.getBoundingClientRect()
          return [element.querySelector('h2, .opener')?.textContent, left, top, width, height]
        }),
    )
  }

  async function armed(button: Locator): Promise<{ x: number; y: number }> {
    await button.and(page.locator('[aria-disabled=false]')).waitFor()
    const [x, y] = await middleOf(button)
    return { x, y }
  }
})

async function middleOf(element: Locator): Promise<[number, number]> {
  const box = await element.boundingBox()
  assert.ok(box)
  return [box.x + box.width / 2, box.y + box.height / 2]
}
