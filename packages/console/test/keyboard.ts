import assert from 'node:assert/strict'
import type { Locator, Page } from 'playwright-core'

/** More stops than any page of the tests has. */
const MAX_STOPS = 250

/** Presses Tab until a control has the focus. */
export async function tabTo(page: Page, control: Locator): Promise<void> {
  await control.waitFor()
  for (let i = 0; i < MAX_STOPS; i++) {
    if (await control.evaluate((element) => element === document.activeElement)) return
    await page.keyboard.press('Tab')
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
