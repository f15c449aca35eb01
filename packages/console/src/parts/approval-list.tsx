import { useWindowVirtualizer } from '@tanstack/react-virtual'
import { type ReactElement, useEffect, useRef, useState } from 'react'
import { addFresh, APPROVAL_FILTERS, type Batch, type Card, toQueue } from '../approval-queue.ts'
import { useVerdicts } from '../approval-verdicts.ts'
import { formatNumber, plural } from '../format.ts'
import { useNarrow, useNow, useTop } from '../hooks.ts'
import { focusRow, rowOf, type Rows } from '../row-keys.ts'
import type { ApprovalRow } from '../wire.ts'
import { announce } from './announcer.tsx'
import { ApprovalCard } from './approval-card.tsx'
import { NoMatch, useIsFiltered } from './filters.tsx'
import { Empty } from './panels.tsx'

interface ApprovalListProps {
  /** The requests that match the filter. */
  readonly pending: readonly ApprovalRow[]
  /** The number of all waiting requests. */
  readonly total: number
}

/**
 * Shows the waiting requests, oldest first. New ones are announced in a bar, so that nothing moves under the pointer.
 */
export function ApprovalList({ pending, total }: ApprovalListProps): ReactElement {
  const nowMs = useNow(1000)
  const { ended, held } = useVerdicts()
  const isFiltered = useIsFiltered(APPROVAL_FILTERS)
  const [shown, setShown] = useState<readonly Batch[]>([])
  const { groups, fresh } = toQueue({ shown, pending, ended, held: new Set(held.keys()), nowMs })
  // On an empty page nothing can move, so requests are shown at once.
  if (shown.length === 0 && fresh.length > 0) setShown(addFresh([], fresh))
  useEffect(() => {
    if (fresh.length > 0) announce(`${formatNumber(fresh.length)} new ${plural(fresh.length, 'request')}`)
  }, [fresh.length])
  const cards = groups.flat()
  const waiting = cards.filter(({ state }) => state === 'pending' || state === 'held').length
  const over = groups.filter(isOver).length
  return (
    <section aria-labelledby="waiting-title">
      <div className="queue-bar">
        <h2 id="waiting-title" tabIndex={-1}>
          Waiting{' '}
          <span className="dim">
            {formatNumber(waiting + fresh.length)}
            {isFiltered && ` of ${formatNumber(total)}`}
          </span>
        </h2>
        {fresh.length > 0 && (
          <button type="button" className="main" onClick={() => setShown(addFresh(groups, fresh))}>
            {formatNumber(fresh.length)} new
            <span className="wide"> {plural(fresh.length, 'request')}</span> – show
          </button>
        )}
        {over > 0 && (
          <button type="button" className="end" onClick={() => setShown(stillWaiting(groups))}>
            Clear {over}
            <span className="wide"> finished</span>
          </button>
        )}
      </div>
      {groups.length === 0 && <NothingWaits isFiltered={isFiltered} />}
      {groups.length > 0 && <Cards groups={groups} nowMs={nowMs} />}
    </section>
  )
}

function NothingWaits({ isFiltered }: { isFiltered: boolean }): ReactElement {
  if (isFiltered) return <NoMatch title="No waiting call matches the filter" names={APPROVAL_FILTERS} />
  return (
    <Empty title="No call is waiting">
      <p>
        Calls to tools with the decision <code>ask</code> show here. A call can run once you approve it.
      </p>
    </Empty>
  )
}

function isOver(cards: readonly Card[]): boolean {
  return cards.every(({ state }) => state !== 'pending' && state !== 'held')
}

function stillWaiting(groups: readonly (readonly Card[])[]): readonly Batch[] {
  return groups.filter((cards) => !isOver(cards)).map((cards) => cards.map(({ approval }) => approval))
}

/** The estimated height of a card. Most cards are higher, so the first screen is full. */
const ESTIMATED_PX = 220
const GAP_PX = 12
/** The height of the sticky header and bar. */
const COVERED_PX = 110

/** Renders the cards near the screen. */
function Cards({ groups, nowMs }: { groups: readonly (readonly Card[])[]; nowMs: number }): ReactElement {
  const list = useRef<HTMLUListElement>(null)
  const top = useTop(list)
  const isNarrow = useNarrow()
  const rows = useWindowVirtualizer({
    count: groups.length,
    estimateSize: () => ESTIMATED_PX,
    getItemKey: (i) => groups[i]?.[0]?.approval.id ?? i,
    gap: GAP_PX,
    overscan: 3,
    scrollMargin: top,
    scrollPaddingStart: COVERED_PX,
  })
  useEffect(() => rows.measure(), [rows, isNarrow])
  useInboxKeys(list, rows)
  const items = rows.getVirtualItems()
  const before = (items[0]?.start ?? top) - top
  const after = rows.getTotalSize() - ((items.at(-1)?.end ?? top) - top)
  return (
    <>
      <ul ref={list} className="approvals" style={{ paddingTop: before, paddingBottom: Math.max(0, after) }}>
        {items.map(({ key, index }) => (
          <ApprovalCard
            key={key}
            cards={groups[index] ?? []}
            nowMs={nowMs}
            index={index}
            size={groups.length}
            measure={rows.measureElement}
          />
        ))}
      </ul>
      <p className="key-hints dim">
        <kbd>J</kbd> <kbd>K</kbd> next and previous request, <kbd>A</kbd> approve, <kbd>R</kbd> reject, <kbd>U</kbd>{' '}
        undo, <kbd>C</kbd> compare with what is there
      </p>
    </>
  )
}

/** The keys that press buttons of the focused card. */
const PRESSED: ReadonlyMap<string, string> = new Map([
  ['a', '.verdict .approve'],
  ['r', '.verdict .reject'],
  ['u', '.result .undo'],
  ['c', '.comparison .compare'],
])
const STEPS: ReadonlyMap<string, number> = new Map([
  ['j', 1],
  ['k', -1],
])

/** Handles keys: J and K move between cards; A, R, U and C press the buttons of the focused card. */
function useInboxKeys(list: React.RefObject<HTMLUListElement | null>, rows: Rows): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const target = event.target as HTMLElement
      if (event.altKey || event.ctrlKey || event.metaKey || event.repeat || !list.current) return
      if (target.matches('input, select, textarea') || target.closest('dialog, [role=dialog]')) return
      const key = event.key.toLowerCase()
      const card = target.closest<HTMLElement>('.approval')
      const step = STEPS.get(key)
      const button = card?.querySelector<HTMLElement>(PRESSED.get(key) ?? ':not(*)')
      if (step === undefined && !button) return
      event.preventDefault()
      if (step === undefined) button?.click()
      else focusRow(list.current, rows, card ? rowOf(card) + step : 0)
    }
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  }, [list, rows])
}
