import assert from 'node:assert/strict'
import type { CDPSession, Locator, Page } from 'playwright-core'

/** More stops than any page of the tests has. */
const MAX_STOPS = 250

const TAB = { key: 'Tab', code: 'Tab', windowsVirtualKeyCode: 9 }
/** Few enough that the last ones, which do nothing, cost little. */
const AT_ONCE = 10

/** Presses Tab, and does not wait for one before it presses the next. */
export async function pressTab(page: Page, times: number): Promise<void> {
  const session = await sessionOf(page)
  const sent = Array.from({ length: times }, () =>
    (['rawKeyDown', 'keyUp'] as const).map((type) => session.send('Input.dispatchKeyEvent', { type, ...TAB })),
  )
  await Promise.all(sent.flat())
}

const sessions = new WeakMap<Page, Promise<CDPSession>>()

function sessionOf(page: Page): Promise<CDPSession> {
  const session = sessions.get(page) ?? page.context().newCDPSession(page)
  sessions.set(page, session)
  return session
}

/** Presses Tab until a control has the focus. */
export async function tabTo(page: Page, control: Locator): Promise<void> {
  await control.waitFor()
  for (let pressed = 0; pressed <= MAX_STOPS; pressed += AT_ONCE) {
    // The control may be another element by now.
    if (await control.evaluate(holdFocus)) return
    await pressTab(page, AT_ONCE)
  }
  throw new Error(`Tab does not reach ${String(control)}`)
}

/** Reaches a control with Tab, and presses it. */
export async function tabAndPress(page: Page, control: Locator, key = 'Enter'): Promise<void> {
  await tabTo(page, control)
  await page.keyboard.press(key)
}

/** Reaches a field with Tab, and types in place of what it holds. */
export async function tabAndType(page: Page, field: Locator, text: string): Promise<void> {
  await tabTo(page, field)
  if (await field.evaluate((element) => element.matches('input, textarea'))) await page.keyboard.press('Control+a')
  await page.keyboard.type(text)
}

/** Asserts that an action did not take the focus away. A person would have to start again at the top of the page. */
export async function checkFocus(page: Page, after: string): Promise<void> {
  // What takes over the focus does so in the next frame at the latest.
  const tag = await page.evaluate(
    () =>
      new Promise<string>((resolve) => {
        const look = (): void => resolve(document.activeElement?.localName ?? '')
        requestAnimationFrame(() => requestAnimationFrame(look))
      }),
  )
  assert.notEqual(tag, 'body', `the focus is lost after ${after}`)
}

/** Has an element keep the focus when it gets it: Tab does nothing there until this returns whether it has the focus. */
function holdFocus(element: Element): boolean {
  const held = globalThis as { stopHolding?: () => void }
  held.stopHolding?.()
  if (element === document.activeElement) return true
  const hold = (event: KeyboardEvent): void => {
    if (event.key !== 'Tab' || document.activeElement !== element) return
    event.preventDefault()
    event.stopImmediatePropagation()
  }
  addEventListener('keydown', hold, true)
  held.stopHolding = () => removeEventListener('keydown', hold, true)
  return false
}
