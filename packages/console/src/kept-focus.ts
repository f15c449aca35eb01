const TABBED = 'a[href], button:enabled, input:enabled, select:enabled, textarea:enabled, summary, [tabindex="0"]'

/**
 * Keeps the focus near when the control that has it goes away, such as a button that is replaced by what it has done, or
 * a row that a list no longer has. Otherwise it falls back to the page, and a person who uses the keyboard starts again
 * at its top. It goes to the control's like in the nearest part that is left, or to the first one there.
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
  // A press beside the controls takes the focus away, as it should.
  document.addEventListener('pointerdown', () => (place = undefined))
  // After the effects of the page, which may move the focus themselves.
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
  // Where all of the page is another one, such as after the login, it begins at its top.
  for (let at: Element | null = element; at && at.id !== 'root' && at !== document.body; at = at.parentElement)
    path.push(at)
  return path
}
