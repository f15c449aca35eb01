import { type ReactElement, useSyncExternalStore } from 'react'
import { APPROVAL_FILTERS, type ApprovalFilters, matchesFilters, valuesOf } from '../approval-queue.ts'
import { desktopNotices } from '../desktop-notices.ts'
import { useFilter, useNarrow } from '../hooks.ts'
import { usePending } from '../pending.ts'
import { History } from '../parts/approval-history.tsx'
import { ApprovalList } from '../parts/approval-list.tsx'
import { FilterBar, OneOf, useIsFiltered } from '../parts/filters.tsx'
import { PageHead, Pending } from '../parts/panels.tsx'
import type { ApprovalRow } from '../wire.ts'

/** Shows the waiting requests with their inputs, and past decisions. */
export function ApprovalsPage(): ReactElement {
  const answer = usePending()
  const filters: ApprovalFilters = useFilter(APPROVAL_FILTERS)
  const approvals = answer.data?.approvals
  return (
    <>
      <PageHead
        title="Approvals"
        about="Calls that wait for a person. You approve this exact input, once. Secrets are masked."
      >
        <NoticeButton />
      </PageHead>
      <Pending answer={answer} what="the approvals" />
      {approvals && (
        <>
          <Filters approvals={approvals} />
          <ApprovalList
            key={JSON.stringify(filters)}
            pending={approvals.filter((approval) => matchesFilters(approval, filters))}
            total={approvals.length}
          />
          <History />
        </>
      )}
    </>
  )
}

const LABELS: Readonly<Record<keyof ApprovalFilters, readonly [label: string, every: string]>> = {
  tool: ['Tool', 'all tools'],
  user: ['Caller', 'all callers'],
  run: ['Run', 'all runs'],
  tenant: ['Tenant', 'all tenants'],
}

/** Shows filters for the fields by which the waiting requests differ. Its size does not change when requests arrive. */
function Filters({ approvals }: { approvals: readonly ApprovalRow[] }): ReactElement {
  const isOpen = useIsFiltered(APPROVAL_FILTERS)
  const isNarrow = useNarrow()
  return (
    <details className="filters" open={!isNarrow || isOpen}>
      <summary>Filter</summary>
      <FilterBar names={APPROVAL_FILTERS}>
        {APPROVAL_FILTERS.map((name) => {
          const [label, every] = LABELS[name]
          return <OneOf key={name} name={name} label={label} every={every} values={valuesOf(approvals, name)} />
        })}
      </FilterBar>
    </details>
  )
}

/** Turns desktop notifications on and off. Browsers ask for permission only after a press. */
function NoticeButton(): ReactElement | null {
  const state = useSyncExternalStore(desktopNotices.subscribe, () => desktopNotices.state)
  if (state === 'absent') return null
  if (state === 'denied') return <span className="end dim">Notifications are blocked in the browser.</span>
  return (
    <button
      type="button"
      className="end"
      aria-pressed={state === 'on'}
      onClick={() => void desktopNotices.turn(state === 'on' ? 'off' : 'on')}
    >
      Desktop notifications
    </button>
  )
}
