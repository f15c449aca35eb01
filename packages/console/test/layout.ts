import type { Page } from 'playwright-core'

/**
 * Returns what a person would trip over in the layout of the page, or of the dialog that is open: controls over each
 * other, texts over each other, texts that are cut off without a way to read them, and texts outside of the screen.
 */
export function findLayoutFaults(page: Page): Promise<readonly string[]> {
  return page.evaluate(() => {
    const CONTROLS = 'a[href], button, input:not([hidden]), select, textarea, summary, [role=option], [tabindex="0"]'
    /** What lies within this many pixels only touches. */
    const TOUCH_PX = 1
    /** Fonts reach beyond their lines. */
    const FONT_PX = 5
    /** Less than this of a text that ends in "…" says nothing. */
    const MIN_SHORTENED_PX = 40
    const faults: string[] = []
    const root = [...document.querySelectorAll('dialog[open], [role=dialog]')].at(-1) ?? document.body
    const controls = [...root.querySelectorAll<HTMLElement>(CONTROLS)].filter(isShown)
    const drawn = controls.map((element) => ({ element, boxes: boxesOf(element) }))
    for (const [i, one] of drawn.entries())
      for (const other of drawn.slice(i + 1))
        if (!isNested(one.element, other.element) && !isLifted(one.element, other.element))
          if (one.boxes.some((a) => other.boxes.some((b) => overlaps(a, b, TOUCH_PX))))
            faults.push(`${nameOf(one.element)} and ${nameOf(other.element)} overlap`)
    const texts = textsOf(root)
    for (const [i, one] of texts.entries())
      for (const other of texts.slice(i + 1))
        if (!isNested(one.element, other.element) && !isLifted(one.element, other.element))
          if (one.boxes.some((a) => other.boxes.some((b) => overlaps(a, b, FONT_PX))))
            faults.push(`the texts "${one.text}" and "${other.text}" overlap`)
    for (const { element, text, boxes, whole } of texts) {
      const isOutside = boxes.some(({ left, right }) => left < -TOUCH_PX || right > innerWidth + TOUCH_PX)
      if (isOutside && !isScrolled(element)) faults.push(`"${text}" is outside of the screen`)
      const holder = cutBy(element, whole)
      if (holder) faults.push(`"${text}" is cut off by ${nameOf(holder)}`)
    }
    return faults

    interface Box {
      readonly left: number
      readonly top: number
      readonly right: number
      readonly bottom: number
    }

    function isShown(element: Element): boolean {
      if (element.closest('.unseen, [inert], .skip') || !element.checkVisibility({ visibilityProperty: true }))
        return false
      // What another one is open over cannot be used.
      const dialog = element.closest('dialog')
      return dialog === null || dialog === root || dialog.open
    }

    function textsOf(within: Element) {
      const walker = document.createTreeWalker(within, NodeFilter.SHOW_TEXT)
      const found: { element: Element; text: string; boxes: readonly Box[]; whole: Box }[] = []
      for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        const element = node.parentElement
        const text = node.textContent?.trim() ?? ''
        if (!element || text === '' || !isShown(element) || element.closest('option, textarea, svg')) continue
        const range = document.createRange()
        range.selectNodeContents(node)
        const boxes = [...range.getClientRects()].flatMap((box) => clip(box, element) ?? [])
        if (boxes.length > 0)
          found.push({ element, text: text.slice(0, 60), boxes, whole: range.getBoundingClientRect() })
      }
      return found
    }

    function boxesOf(element: Element): readonly Box[] {
      return [...element.getClientRects()].flatMap((box) => clip(box, element.parentElement) ?? [])
    }

    /** The part of a box that an element and those around it show. */
    function clip(box: Box, element: Element | null): Box | undefined {
      let { left, top, right, bottom } = box
      for (let at = element; at && at !== document.body; at = at.parentElement) {
        const { overflowX, overflowY } = getComputedStyle(at)
        const edge = at.getBoundingClientRect()
        if (overflowX !== 'visible') [left, right] = [Math.max(left, edge.left), Math.min(right, edge.right)]
        if (overflowY !== 'visible') [top, bottom] = [Math.max(top, edge.top), Math.min(bottom, edge.bottom)]
      }
      return right - left > TOUCH_PX && bottom - top > TOUCH_PX ? { left, top, right, bottom } : undefined
    }

    function overlaps(a: Box, b: Box, slack: number): boolean {
      const width = Math.min(a.right, b.right) - Math.max(a.left, b.left)
      const height = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top)
      return width > TOUCH_PX && height > slack
    }

    function isNested(a: Element, b: Element): boolean {
      return a.contains(b) || b.contains(a)
    }

    /** Headers that stay on top of what scrolls, lists of suggestions, and marks on a chart are meant to cover it. */
    function isLifted(a: Element, b: Element): boolean {
      return stickyOf(a) !== stickyOf(b)
    }

    function stickyOf(element: Element): Element | undefined {
      for (let at: Element | null = element; at && at !== root; at = at.parentElement)
        if (
          ['fixed', 'sticky'].includes(getComputedStyle(at).position) ||
          at.matches('.filter-box [role=listbox], .policy-mark')
        )
          return at
      return undefined
    }

    function isScrolled(element: Element): boolean {
      for (let at: Element | null = element; at; at = at.parentElement)
        if (['auto', 'scroll'].includes(getComputedStyle(at).overflowX)) return true
      return false
    }

    /** The element that hides a part of a text. One that ends in "…" may, in a row that opens or with the whole as its title. */
    function cutBy(element: Element, whole: Box): Element | undefined {
      for (let at: Element | null = element; at && at !== document.body; at = at.parentElement) {
        const { overflowX, overflowY, textOverflow, webkitLineClamp } = getComputedStyle(at)
        const edge = at.getBoundingClientRect()
        if (['auto', 'scroll'].includes(overflowX) || ['auto', 'scroll'].includes(overflowY)) return undefined
        const isCutX = overflowX !== 'visible' && whole.right > edge.right + TOUCH_PX
        const isCutY = overflowY !== 'visible' && whole.bottom > edge.bottom + FONT_PX
        if (!isCutX && !isCutY) continue
        const isMarked = isCutX ? textOverflow === 'ellipsis' : webkitLineClamp !== 'none'
        const isElsewhere = at.closest('[title], [data-index]') !== null
        return isMarked && isElsewhere && edge.width >= MIN_SHORTENED_PX ? undefined : at
      }
      return undefined
    }

    function nameOf(element: Element): string {
      const words = element.getAttribute('aria-label') ?? element.textContent?.trim().slice(0, 50) ?? ''
      const kind = (element.getAttribute('class') ?? '').split(' ').map((name) => name && `.${name}`)
      return `<${element.localName}${kind.join('')}> "${words}"`
    }
  })
}
