import { type ReactElement, useSyncExternalStore } from 'react'
import { APPROVAL_FILTERS, type ApprovalFilters, matchesFilters, valuesOf } from '../approval-queue.ts'
import { desktopNotices } from '../desktop-notices.ts'
import { type Choose, useAddress, useNarrow } from '../hooks.ts'
import { usePending } from '../pending.ts'
import { History } from '../parts/approval-history.tsx'
import { ApprovalList } from '../parts/approval-list.tsx'
import { OneOf } from '../parts/filters.tsx'
import { Failed, Loading } from '../parts/panels.tsx'
import type { ApprovalRow } from '../wire.ts'

/** The waiting requests with their inputs, and past decisions. */
export function ApprovalsPage(): ReactElement {
  const { data, error, refetch } = usePending()
  const [{ choices }, choose] = useAddress()
  const filters = toFilters(choices)
  const isFiltered = APPROVAL_FILTERS.some((name) => filters[name] !== '')
  return (
    <>
      <div className="page-head">
        <h1>Approvals</h1>
        <p>Calls that wait for a person. You approve this exact input, once. Secrets are masked.</p>
        <NoticeButton />
      </div>
      {error && !data && <Failed error={error} retry={refetch} />}
      {!data && !error && <Loading what="the approvals" />}
      {data && <FilterBar approvals={data.approvals} filters={filters} isFiltered={isFiltered} choose={choose} />}
      {data && (
        <ApprovalList
          key={JSON.stringify(filters)}
          pending={data.approvals.filter((approval) => matchesFilters(approval, filters))}
          total={data.approvals.length}
          isFiltered={isFiltered}
          clear={() => choose(NO_FILTER)}
        />
      )}
      {data && <History status={choices.get('status') ?? ''} choose={choose} />}
    </>
  )
}

function toFilters(choices: ReadonlyMap<string, string>): ApprovalFilters {
  const of = (name: string): string => choices.get(name) ?? ''
  return { tool: of('tool'), user: of('user'), run: of('run'), tenant: of('tenant') }
}

const NO_FILTER: ApprovalFilters = { tool: '', user: '', run: '', tenant: '' }
const LABELS: Readonly<Record<keyof ApprovalFilters, string>> = {
  tool: 'Tool',
  user: 'Caller',
  run: 'Run',
  tenant: 'Tenant',
}
const EVERY: Readonly<Record<keyof ApprovalFilters, string>> = {
  tool: 'all tools',
  user: 'all callers',
  run: 'all runs',
  tenant: 'all tenants',
}

interface FilterBarProps {
  readonly approvals: readonly ApprovalRow[]
  readonly filters: ApprovalFilters
  readonly isFiltered: boolean
  readonly choose: Choose
}

/** Offers the fields by which the waiting requests differ. Its size does not change when requests arrive. */
function FilterBar({ approvals, filters, isFiltered, choose }: FilterBarProps): ReactElement {
  const isNarrow = useNarrow()
  return (
    <details className="filters" open={!isNarrow || isFiltered}>
      <summary>Filter</summary>
      <div className="toolbar">
        {APPROVAL_FILTERS.map((name) => (
          <OneOf
            key={name}
            label={LABELS[name]}
            every={EVERY[name]}
            values={valuesOf(approvals, name)}
            value={filters[name]}
            apply={(value) => choose({ [name]: value })}
          />
        ))}
        {isFiltered && (
          <button type="button" className="quiet" onClick={() => choose(NO_FILTER)}>
            Clear
          </button>
        )}
      </div>
    </details>
  )
}

/** Turns desktop notifications on and off. Browsers ask the person only after a press. */
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
