import type { KeyboardEvent } from 'react'

/** The part of a virtualizer that scrolls to a row. */
interface Rows {
  readonly options: { readonly count: number }
  scrollToIndex(index: number, options?: { align?: 'auto' }): void
}

const PAGE_ROWS = 12
type RowStep = (row: number, count: number) => number
const STEPS: ReadonlyMap<string, RowStep> = new Map<string, RowStep>([
  ['ArrowDown', (row) => row + 1],
  ['ArrowUp', (row) => row - 1],
  ['PageDown', (row) => row + PAGE_ROWS],
  ['PageUp', (row) => row - PAGE_ROWS],
  ['Home', () => 0],
  ['End', (_row, count) => count - 1],
])
/** The maximum number of frames to wait for a row to be rendered after scrolling to it. */
const MAX_FRAMES = 20

/**
 * Moves the focus between rows with the arrow keys, Page Up and Down, Home and End. Rows have `data-index`, and their
 * focusable element has `data-focus`. The tab key still visits every rendered element.
 */
export function moveByKeys(event: KeyboardEvent<HTMLElement>, rows: Rows): void {
  const step = STEPS.get(event.key)
  const target = event.target as HTMLElement
  const row = target.closest<HTMLElement>('[data-index]')
  if (!step || !row || !target.matches('[data-focus]') || event.altKey || event.ctrlKey || event.metaKey) return
  event.preventDefault()
  focusRow(event.currentTarget, rows, step(rowOf(row), rows.options.count))
}

/** Returns whether a key moves between rows. */
export function isStep(key: string): boolean {
  return STEPS.has(key)
}

/** Returns the index of a row's element. */
function rowOf(row: HTMLElement): number {
  return Number(row.dataset['index'])
}

/**
 * Scrolls to a row and focuses it, or its part with `data-focus`. If the index does not exist, the nearest row is used.
 */
export function focusRow(list: HTMLElement, rows: Rows, index: number): void {
  const to = Math.max(0, Math.min(rows.options.count - 1, index))
  rows.scrollToIndex(to, { align: 'auto' })
  focusSoon(() => {
    const row = list.querySelector<HTMLElement>(`[data-index="${to}"]`)
    return row?.querySelector<HTMLElement>('[data-focus]') ?? row
  }, MAX_FRAMES)
}

function focusSoon(find: () => HTMLElement | null, frames: number): void {
  const element = find()
  if (element) element.focus({ preventScroll: true })
  else if (frames > 0) requestAnimationFrame(() => focusSoon(find, frames - 1))
}
