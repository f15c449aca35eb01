import Table from 'cli-table3'
import type { Stream } from './io.ts'

const NONE = {
  top: '',
  'top-mid': '',
  'top-left': '',
  'top-right': '',
  bottom: '',
  'bottom-mid': '',
  'bottom-left': '',
}
const NO_LINES = {
  ...NONE,
  'bottom-right': '',
  left: '',
  'left-mid': '',
  mid: '',
  'mid-mid': '',
  right: '',
  'right-mid': '',
}
const GAP = '  '
const MIN_LAST_WIDTH = 20

/** Returns a table without borders. On a terminal the last column is wrapped to its width. */
export function renderTable(head: readonly string[], rows: readonly (readonly string[])[], stream: Stream): string {
  const columns = head.map((title, i) => Math.max(0, ...[title, ...rows.map((row) => row[i] ?? '')].map(widthOf)))
  const before = columns.slice(0, -1).reduce((sum, width) => sum + width + GAP.length, 0)
  const left = Math.max(MIN_LAST_WIDTH, (stream.columns ?? 0) - before - 1)
  const last = columns.at(-1) ?? 0
  const wraps = stream.isTTY === true && last > left
  const table = new Table({
    head: [...head],
    chars: { ...NO_LINES, middle: GAP },
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': 0 },
    colWidths: columns.map((width, i) => (wraps && i === columns.length - 1 ? left : width)),
    wordWrap: wraps,
  })
  table.push(...rows.map((row) => [...row]))
  return table
    .toString()
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n')
}

/** Returns the width of a text. Colour codes have no width. */
function widthOf(text: string): number {
  return Math.max(...text.split('\n').map((line) => line.replace(/\u001b\[[0-9;]*m/g, '').length))
}
