import type { ReactElement } from 'react'
import { linkTo } from '../address.ts'
import { useApi } from '../hooks.ts'
import { CALL_LOOKS } from '../states.ts'
import type { CallRow, CallsBody } from '../wire.ts'
import { Badge, EventBadge } from './badges.tsx'
import { Drawer } from './drawer.tsx'
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
    <Drawer
      title={
        <>
          Call of <Exact text={call?.records.at(-1)?.tool ?? id} />
        </>
      }
      beside={call && <Badge word={call.outcome} look={CALL_LOOKS[call.outcome]} />}
      close={close}
      opener={() => document.querySelector<HTMLElement>(`[data-call="${CSS.escape(id)}"]`)}
    >
      {call ? (
        <Records call={call} />
      ) : found.data || found.error ? (
        <Empty title="Unknown call" />
      ) : (
        <Loading what="the call" />
      )}
    </Drawer>
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
