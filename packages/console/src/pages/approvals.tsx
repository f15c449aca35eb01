import { type ReactElement, useSyncExternalStore } from 'react'
import { linkTo } from '../address.ts'
import { APPROVAL_FILTERS, type ApprovalFilters, matchesFilters } from '../approval-queue.ts'
import { desktopNotices } from '../desktop-notices.ts'
import { useChoices, useFilter } from '../hooks.ts'
import { usePending } from '../pending.ts'
import { History } from '../parts/approval-history.tsx'
import { ApprovalList } from '../parts/approval-list.tsx'
import { GrantList } from '../parts/grant-list.tsx'
import { PageHead, Pending } from '../parts/panels.tsx'
import { DeadReceivers } from '../parts/receivers.tsx'

const VIEWS = [
  { name: '', title: 'Waiting', Content: Inbox },
  { name: 'grants', title: 'Grants', Content: GrantList },
  { name: 'history', title: 'History', Content: History },
] as const

/** Shows the waiting requests, the grants, and past decisions. */
export function ApprovalsPage(): ReactElement {
  const view = useChoices()('view')
  const { name, Content } = VIEWS.find((one) => one.name === view) ?? VIEWS[0]
  return (
    <div className="inbox">
      <PageHead title="Approvals">
        <nav className="views" aria-label="Views of approvals">
          {VIEWS.map((one) => (
            <a
              key={one.name}
              href={linkTo('approvals', { view: one.name })}
              aria-current={one.name === name ? 'page' : undefined}
            >
              {one.title}
            </a>
          ))}
        </nav>
        <NoticeButton />
      </PageHead>
      <DeadReceivers />
      <Content />
    </div>
  )
}

/** Shows the waiting requests with their inputs. */
function Inbox(): ReactElement {
  const answer = usePending()
  const filters: ApprovalFilters = useFilter(APPROVAL_FILTERS)
  const approvals = answer.data?.approvals
  return (
    <>
      <Pending answer={answer} what="the approvals" />
      {approvals && (
        <ApprovalList
          filter={JSON.stringify(filters)}
          pending={approvals.filter((approval) => matchesFilters(approval, filters))}
          all={approvals}
        />
      )}
    </>
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
