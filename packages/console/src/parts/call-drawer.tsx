import * as Dialog from '@radix-ui/react-dialog'
import type { ReactElement } from 'react'
import { linkTo } from '../address.ts'
import { useApi } from '../hooks.ts'
import { CALL_LOOKS } from '../states.ts'
import type { CallRow, CallsBody } from '../wire.ts'
import { Badge, EventBadge } from './badges.tsx'
import { Exact } from './exact.tsx'
import { Empty, Loading } from './panels.tsx'
import { Fields, InputPreview } from './record-drawer.tsx'
import { RunTimeline } from './run-timeline.tsx'

interface CallDrawerProps {
  readonly id: string
  /** The call, if it is loaded. */
  readonly held: CallRow | undefined
  readonly close: () => void
}

/** A call with all its records, the first one first. */
export function CallDrawer({ id, held, close }: CallDrawerProps): ReactElement {
  const found = useApi<CallsBody>({
    key: ['calls', 'one', id],
    path: '/api/calls',
    parameters: { call: id, limit: 1 },
    enabled: !held,
  })
  const call = held ?? found.data?.calls.find((one) => one.id === id)
  return (
    <Dialog.Root open onOpenChange={(isOpen) => !isOpen && close()}>
      <Dialog.Portal>
        <div className="backdrop" onClick={close} aria-hidden="true" />
        <Dialog.Content className="drawer" aria-describedby={undefined} onCloseAutoFocus={() => focusOpener(id)}>
          <div className="drawer-head">
            <Dialog.Title className="dialog-title">
              Call of <Exact text={call?.records.at(-1)?.tool ?? id} />
            </Dialog.Title>
            {call && <Badge word={call.outcome} look={CALL_LOOKS[call.outcome]} />}
            <Dialog.Close className="quiet end">Close</Dialog.Close>
          </div>
          {call ? (
            <Records call={call} />
          ) : found.data || found.error ? (
            <Empty title="Unknown call" />
          ) : (
            <Loading what="the call" />
          )}
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  )
}

function Records({ call: { records } }: { call: CallRow }): ReactElement {
  const { run_id: run, session_id: session, seq } = records.at(-1) ?? {}
  return (
    <>
      <p className="call-links">
        {run !== undefined && <a href={linkTo('calls', { run })}>All calls of this run</a>}
        {session !== undefined && <a href={linkTo('calls', { session })}>All calls of this session</a>}
      </p>
      {records.map((record) => (
        <section key={record.seq} className="part">
          <h3>
            <EventBadge record={record} /> <span className="dim">record {record.seq}</span>
          </h3>
          <Fields record={record} />
          <InputPreview record={record} />
        </section>
      ))}
      {run !== undefined && seq !== undefined && (
        <section className="part">
          <h3>The run</h3>
          <RunTimeline run={run} seq={seq} />
        </section>
      )}
    </>
  )
}

/** Focuses the row's link that opened the drawer, or the page if the row is no longer rendered. */
function focusOpener(id: string): void {
  const opener =
    document.querySelector<HTMLElement>(`[data-call="${CSS.escape(id)}"]`) ??
    document.querySelector<HTMLElement>('main')
  opener?.focus({ preventScroll: true })
}
