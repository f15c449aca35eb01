import { useWindowVirtualizer } from '@tanstack/react-virtual'
import { type ReactElement, useEffect, useMemo, useRef, useState } from 'react'
import { addFresh, APPROVAL_FILTERS, type Batch, type Card, toQueue } from '../approval-queue.ts'
import { useVerdicts, verdicts } from '../approval-verdicts.ts'
import { count, formatNumber, plural } from '../format.ts'
import { choose, useBeside, useChoices, useNarrow, useNow, useTop } from '../hooks.ts'
import { useInboxKeys } from '../inbox-keys.ts'
import { focusRow, moveByKeys } from '../row-keys.ts'
import type { ApprovalRow } from '../wire.ts'
import { announce } from './announcer.tsx'
import { ApprovalDrawer } from './approval-card.tsx'
import { ApprovalFilter } from './approval-filter.tsx'
import { RequestRow } from './approval-row.tsx'
import { NoMatch, useIsFiltered } from './filters.tsx'
import { Empty } from './panels.tsx'
import { Split } from './split.tsx'
import { isOpenTo, VerdictForm } from './verdict.tsx'

interface ApprovalListProps {
  /** The requests that match the filter. */
  readonly pending: readonly ApprovalRow[]
  /** The filter. Another one begins a new list. */
  readonly filter: string
  /** All waiting requests. */
  readonly all: readonly ApprovalRow[]
}

type Cards = readonly Card[]

/**
 * Shows the waiting requests, oldest first, with the open one beside them. New ones are announced in a bar, so that nothing
 * moves under the pointer.
 */
export function ApprovalList({ pending, filter, all }: ApprovalListProps): ReactElement {
  const nowMs = useNow(1000)
  const { ended, held } = useVerdicts()
  const isFiltered = useIsFiltered(APPROVAL_FILTERS)
  const open = useChoices()('id')
  const isBeside = useBeside()
  const [shown, setShown] = useState<readonly Batch[]>([])
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set())
  const [filtered, setFiltered] = useState(filter)
  if (filtered !== filter) {
    setFiltered(filter)
    setShown([])
    setSelected(new Set())
  }
  const { groups, fresh } = toQueue({ shown, pending, ended, held: new Set(held.keys()), nowMs })
  // On an empty page nothing can move, so requests are shown at once.
  if (shown.length === 0 && fresh.length > 0) setShown(addFresh([], fresh))
  useEffect(() => {
    if (fresh.length > 0) announce(`${formatNumber(fresh.length)} new ${plural(fresh.length, 'request')}`)
  }, [fresh.length])
  useFirstOpen(groups)
  const cards = groups.flat()
  const waiting = cards.filter(({ state }) => state === 'pending' || state === 'held').length
  const over = groups.filter(isOver).length
  const chosen = findGroup(groups, open) ?? findNew(all, open)
  const toggle = (id: string): void => setSelected((before) => before.symmetricDifference(new Set([id])))
  function clear(): void {
    const still = stillWaiting(groups)
    setShown(still)
    // Nothing stays open of what is cleared.
    if (!still.flat().some(({ id }) => id === open)) choose({ id: (isBeside && still[0]?.[0]?.id) || '' })
  }
  return (
    <section aria-labelledby="waiting-title">
      <div className="queue-bar">
        <h2 id="waiting-title" tabIndex={-1}>
          Waiting{' '}
          <span className="dim">
            {formatNumber(waiting + fresh.length)}
            {isFiltered && ` of ${formatNumber(all.length)}`}
          </span>
        </h2>
        <ApprovalFilter approvals={all} />
        {fresh.length > 0 && (
          <button type="button" className="main" onClick={() => setShown(addFresh(groups, fresh))}>
            {formatNumber(fresh.length)} new
            <span className="wide"> {plural(fresh.length, 'request')}</span> – show
          </button>
        )}
        {held.size > 1 && (
          <button type="button" onClick={() => verdicts.undo([...held.keys()])}>
            Undo {held.size} <span className="wide"> rejections</span>
          </button>
        )}
        {over > 0 && (
          <button type="button" className="end" onClick={() => clear()}>
            Clear {over}
            <span className="wide"> finished</span>
          </button>
        )}
      </div>
      <Split
        choice="id"
        detail={open !== '' && <ApprovalDrawer key={chosen?.[0]?.approval.id ?? open} cards={chosen} nowMs={nowMs} />}
      >
        {groups.length === 0 && <NothingWaits isFiltered={isFiltered} />}
        {groups.length > 0 && <Requests groups={groups} selected={selected} toggle={toggle} />}
        <Selected groups={groups} selected={selected} select={setSelected} />
      </Split>
    </section>
  )
}

/** Opens the first request once, where it has room beside the list. */
function useFirstOpen(groups: readonly Cards[]): void {
  const isBeside = useBeside()
  const open = useChoices()('id')
  const isDone = useRef(false)
  const first = groups[0]?.[0]?.approval.id
  useEffect(() => {
    if (isDone.current || first === undefined) return
    isDone.current = true
    if (isBeside && open === '') choose({ id: first })
  }, [first, isBeside, open])
}

function findGroup(groups: readonly Cards[], id: string): Cards | undefined {
  return id === '' ? undefined : groups.find((cards) => cards.some(({ approval }) => approval.id === id))
}

/** Returns the card of a request that a link names, and that the list does not show yet. */
function findNew(all: readonly ApprovalRow[], id: string): Cards | undefined {
  const approval = all.find((one) => one.id === id)
  return approval && [{ approval, state: 'pending' }]
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

function isOver(cards: Cards): boolean {
  return cards.every(({ state }) => state !== 'pending' && state !== 'held')
}

function stillWaiting(groups: readonly Cards[]): readonly Batch[] {
  return groups.filter((cards) => !isOver(cards)).map((cards) => cards.map(({ approval }) => approval))
}

const ROW_PX = 24
const NARROW_ROW_PX = 52
/** The height of the sticky header and bar. */
const COVERED_PX = 100

interface RequestsProps {
  readonly groups: readonly Cards[]
  readonly selected: ReadonlySet<string>
  readonly toggle: (id: string) => void
}

/** Renders the rows near the screen. */
function Requests({ groups, selected, toggle }: RequestsProps): ReactElement {
  const list = useRef<HTMLUListElement>(null)
  const top = useTop(list)
  const rowPx = useNarrow() ? NARROW_ROW_PX : ROW_PX
  const rows = useWindowVirtualizer({
    count: groups.length,
    estimateSize: () => rowPx,
    getItemKey: (i) => groups[i]?.[0]?.approval.id ?? i,
    overscan: 4,
    scrollMargin: top,
    scrollPaddingStart: COVERED_PX,
  })
  useEffect(() => rows.measure(), [rows, rowPx])
  useInboxKeys({
    list,
    ids: useMemo(() => groups.map((cards) => cards[0]?.approval.id ?? ''), [groups]),
    focus: (index) => list.current && focusRow(list.current, rows, index),
    toggle,
  })
  const items = rows.getVirtualItems()
  const before = (items[0]?.start ?? top) - top
  const after = rows.getTotalSize() - ((items.at(-1)?.end ?? top) - top)
  return (
    <>
      <ul
        ref={list}
        className="requests card"
        aria-label="Waiting requests"
        style={{ paddingTop: before, paddingBottom: Math.max(0, after) }}
        onKeyDown={(event) => moveByKeys(event, rows)}
      >
        {items.map(({ key, index }) => (
          <RequestRow
            key={key}
            cards={groups[index] ?? []}
            index={index}
            size={groups.length}
            isSelected={selected.has(String(key))}
            toggle={toggle}
          />
        ))}
      </ul>
      <p className="key-hints dim">
        <kbd>J</kbd> <kbd>K</kbd> next and previous, <kbd>A</kbd> approve, <kbd>R</kbd> reject, <kbd>U</kbd> undo,{' '}
        <kbd>C</kbd> compare, <kbd>X</kbd> select
      </p>
    </>
  )
}

interface SelectedProps {
  readonly groups: readonly Cards[]
  readonly selected: ReadonlySet<string>
  readonly select: (ids: ReadonlySet<string>) => void
}

/** Decides the selected requests together, with one reason. It lies over the end of the list, so that no row moves. */
function Selected({ groups, selected, select }: SelectedProps): ReactElement | null {
  const own = groups.filter((cards) => selected.has(cards[0]?.approval.id ?? ''))
  if (own.length === 0) return null
  const open = own.flat().filter(isOpenTo)
  const done = (): void => {
    select(new Set())
    document.querySelector<HTMLElement>('#waiting-title')?.focus({ preventScroll: true })
  }
  const mine = groups.filter((cards) => cards.some(isOpenTo))
  return (
    <div className="selected-bar card" role="group" aria-label="The selected requests">
      <p className="row loose">
        <strong>{count(open.length, 'selected request')}</strong>
        {mine.length > own.length && (
          <button
            type="button"
            className="quiet small"
            onClick={() => select(new Set(mine.map((cards) => cards[0]?.approval.id ?? '')))}
          >
            Select all {mine.length}
          </button>
        )}
        <button type="button" className="quiet small" onClick={done}>
          Select none
        </button>
      </p>
      <VerdictForm open={open.map(({ approval }) => approval)} what="selected" onDone={done} />
    </div>
  )
}
