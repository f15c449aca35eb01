import type { KeyboardEvent } from 'react'

/** What of a virtualiser is needed to go to a row that is not there yet. */
interface Rows {
  readonly options: { readonly count: number }
  scrollToIndex(index: number, options?: { align?: 'auto' }): void
}

const PAGE_ROWS = 12
type Step = (row: number, count: number) => number
const STEPS: ReadonlyMap<string, Step> = new Map<string, Step>([
  ['ArrowDown', (row) => row + 1],
  ['ArrowUp', (row) => row - 1],
  ['PageDown', (row) => row + PAGE_ROWS],
  ['PageUp', (row) => row - PAGE_ROWS],
  ['Home', () => 0],
  ['End', (_row, count) => count - 1],
])
/** A row that was not rendered is there a few frames after it was scrolled to. */
const MAX_FRAMES = 20

/**
 * Lets the arrow keys, Page Up and Down, Home and End move the focus from row to row. Rows carry `data-index`, and what
 * is focused in them `data-focus`. The tab key still goes through all that is rendered.
 */
export function moveByKeys(event: KeyboardEvent<HTMLElement>, rows: Rows): void {
  const step = STEPS.get(event.key)
  const target = event.target as HTMLElement
  const row = target.closest<HTMLElement>('[data-index]')
  if (!step || !row || !target.matches('[data-focus]') || event.altKey || event.ctrlKey || event.metaKey) return
  event.preventDefault()
  const { count } = rows.options
  const to = Math.max(0, Math.min(count - 1, step(Number(row.dataset['index']), count)))
  const list = event.currentTarget
  rows.scrollToIndex(to, { align: 'auto' })
  focusSoon(() => list.querySelector<HTMLElement>(`[data-index="${to}"] [data-focus]`), MAX_FRAMES)
}

function focusSoon(find: () => HTMLElement | null, frames: number): void {
  const element = find()
  if (element) element.focus({ preventScroll: true })
  else if (frames > 0) requestAnimationFrame(() => focusSoon(find, frames - 1))
}
