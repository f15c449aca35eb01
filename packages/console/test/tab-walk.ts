import type { Page } from 'playwright-core'
import { pressTab } from './keyboard.ts'

/** More than any page of the tests has. */
const MAX_STOPS = 250

/**
 * Presses Tab from the start of the page until the focus has left again, and returns what is wrong: a control that is
 * not reached or not left, a focus that cannot be seen, an order that is not the order of reading.
 */
export async function findTabFaults(page: Page): Promise<readonly string[]> {
  await page.evaluate(startWatch)
  for (let pressed = 0; pressed < MAX_STOPS; pressed += 10) {
    await pressTab(page, 10)
    if (await page.evaluate(() => (globalThis as unknown as Watched).tabWalk.isOver())) break
  }
  return page.evaluate(() => (globalThis as unknown as Watched).tabWalk.end())
}

interface Watched {
  tabWalk: { isOver(): boolean; end(): readonly string[] }
}

function startWatch(): void {
  const TABBED =
    'a[href], button, input:not([hidden], [type=hidden]), select, textarea, summary, [tabindex]:not([tabindex^="-"])'
  const MIN_OUTLINE_PX = 2
  const modal = [...document.querySelectorAll<HTMLElement>('dialog[open], [role=dialog]')].at(-1)
  const root: HTMLElement = modal ?? document.body
  const wanted = [...root.querySelectorAll<HTMLElement>(TABBED)].filter(isTabbed)
  const stops: HTMLElement[] = []
  const faults = new Set<string>()
  let isOver = false

  if (modal) modal.focus()
  else {
    // The walk begins above the first control.
    document.body.tabIndex = -1
    document.body.focus()
    document.body.removeAttribute('tabindex')
    scrollTo(0, 0)
  }

  const onKey = ({ key }: KeyboardEvent): void => {
    if (key !== 'Tab' || isOver) return
    const at = document.activeElement
    if (!(at instanceof HTMLElement) || at === document.body || at === stops[0]) {
      isOver = stops.length > 0
      return
    }
    // A date has a stop for each of its parts.
    if (at === stops.at(-1)) return
    if (modal && !modal.contains(at)) faults.add(`the focus leaves the dialog for ${nameOf(at)}`)
    if (stops.includes(at)) {
      faults.add(`the focus goes round from ${nameOf(at)} and never leaves`)
      isOver = true
      return
    }
    checkPlace(at, stops.at(-1))
    checkSeen(at)
    stops.push(at)
  }
  addEventListener('keyup', onKey, true)
  Object.assign(globalThis, {
    tabWalk: {
      isOver: () => isOver,
      end(): readonly string[] {
        removeEventListener('keyup', onKey, true)
        if (!isOver) faults.add(`the focus never leaves; it is at ${nameOf(document.activeElement as HTMLElement)}`)
        const missed = wanted.filter((one) => one.isConnected && isTabbed(one) && !stops.includes(one))
        for (const one of missed) faults.add(`Tab does not reach ${nameOf(one)}`)
        if (stops.length === 0) faults.add('Tab reaches nothing')
        return [...faults]
      },
    },
  } satisfies Watched)

  function isTabbed(element: HTMLElement): boolean {
    if (element.tabIndex < 0 || element.matches(':disabled') || element.closest('[inert]')) return false
    if (!element.checkVisibility({ visibilityProperty: true })) return false
    const dialog = element.closest('dialog')
    if (dialog && !dialog.open) return false
    // Of a group of radio buttons, one is a stop.
    if (element.matches('[type=radio]') && !element.matches(':checked')) return false
    // A list of tabs hands the focus on to the chosen one.
    return !element.matches('[role=tablist]')
  }

  function checkPlace(at: HTMLElement, before: HTMLElement | undefined): void {
    if (!before?.isConnected) return
    const isBack = before.compareDocumentPosition(at) & Node.DOCUMENT_POSITION_PRECEDING && !before.contains(at)
    if (isBack && !at.closest('header')?.contains(before))
      faults.add(`${nameOf(at)} comes after ${nameOf(before)}, which is later in the page`)
    if (isSticky(at) !== isSticky(before)) return
    const [here, there] = [at.getBoundingClientRect(), before.getBoundingClientRect()]
    // The next column may begin further up; what is above in the same column has been read.
    if (here.bottom <= there.top && here.left < there.right)
      faults.add(`${nameOf(at)} comes after ${nameOf(before)}, and is above it`)
  }

  function checkSeen(at: HTMLElement): void {
    // A link that covers its row draws the outline around the row.
    const outlines = [undefined, '::after'].map((part) => getComputedStyle(at, part))
    if (!outlines.some((one) => one.outlineStyle !== 'none' && Number.parseFloat(one.outlineWidth) >= MIN_OUTLINE_PX))
      faults.add(`${nameOf(at)} does not show that it has the focus`)
    const { left, top, width, height } = at.getBoundingClientRect()
    const isSeen = [0.02, 0.5, 0.98].some((x) =>
      [0.1, 0.5, 0.9].some((y) => {
        const hit = document.elementFromPoint(left + width * x, top + height * y)
        return hit !== null && (at.contains(hit) || hit.contains(at) || hit.closest('label')?.control === at)
      }),
    )
    if (!isSeen) faults.add(`${nameOf(at)} has the focus and cannot be seen at ${Math.round(left)}, ${Math.round(top)}`)
  }

  function isSticky(element: Element): boolean {
    for (let at: Element | null = element; at && at !== root; at = at.parentElement)
      if (['fixed', 'sticky'].includes(getComputedStyle(at).position)) return true
    return false
  }

  function nameOf(element: Element): string {
    const words = element.getAttribute('aria-label') ?? element.textContent?.trim().slice(0, 50) ?? ''
    const kind = (element.getAttribute('class') ?? '').split(' ').map((name) => name && `.${name}`)
    return `<${element.localName}${kind.join('')}> "${words}"`
  }
}
