const TABBED = 'a[href], button:enabled, input:enabled, select:enabled, textarea:enabled, summary, [tabindex="0"]'

/**
 * Moves the focus to a near control when the focused control disappears, such as a button that is replaced by its
 * result, or a row that leaves a list. Otherwise the browser moves the focus to the page, and a keyboard user starts
 * again at the top. The new focus is the matching control in the nearest remaining part, or the first control there.
 */
export function keepFocus(): void {
  let place: { readonly name: string; readonly path: readonly Element[] } | undefined
  let frame = 0
  const look = (): void => {
    frame = 0
    if (!place || document.activeElement !== document.body) return
    for (const part of place.path) {
      const controls = part.isConnected ? [part, ...part.querySelectorAll(TABBED)].filter(isTabbed) : []
      const next = controls.find((control) => nameOf(control) === place?.name) ?? controls[0]
      if (next) return next.focus()
    }
  }
  document.addEventListener('focusin', ({ target }) => {
    if (target instanceof Element) place = { name: nameOf(target), path: pathOf(target) }
  })
  // A press beside the controls removes the focus, as expected.
  document.addEventListener('pointerdown', () => (place = undefined))
  // This runs after the page's effects, which may move the focus themselves.
  new MutationObserver(() => (frame ||= requestAnimationFrame(look))).observe(document.body, {
    childList: true,
    subtree: true,
  })
}

function isTabbed(element: Element): element is HTMLElement {
  return element instanceof HTMLElement && element.matches(TABBED) && element.checkVisibility()
}

function nameOf(element: Element): string {
  const { labels } = element as HTMLInputElement
  const words = element.getAttribute('aria-label') ?? labels?.[0]?.textContent ?? element.textContent
  return `${element.localName} ${words}`
}

function pathOf(element: Element): readonly Element[] {
  const path: Element[] = []
  // If the whole page is replaced, such as after the login, the focus starts at the top.
  for (let at: Element | null = element; at && at.id !== 'root' && at !== document.body; at = at.parentElement)
    path.push(at)
  return path
}
