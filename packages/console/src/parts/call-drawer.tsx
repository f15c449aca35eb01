import type { ReactElement } from 'react'
import { linkTo } from '../address.ts'
import { useApi } from '../hooks.ts'
import { CALL_LOOKS } from '../states.ts'
import type { CallRow, CallsBody } from '../wire.ts'
import { Badge, EventBadge } from './badges.tsx'
import { Drawer, Part } from './drawer.tsx'
import { Exact } from './exact.tsx'
import { Ending, Fields, InputPreview } from './record-drawer.tsx'
import { RunTimeline } from './run-timeline.tsx'

interface CallDrawerProps {
  readonly id: string
  /** The call, if it is loaded. */
  readonly held: CallRow | undefined
}

/** Shows a call with all its records, the first one first. */
export function CallDrawer({ id, held }: CallDrawerProps): ReactElement {
  const found = useApi<CallsBody>({
    key: ['calls', 'one', id],
    path: '/api/calls',
    parameters: { call: id, limit: 1 },
    enabled: !held,
  })
  const call = held ?? found.data?.calls.find((one) => one.id === id)
  return (
    <Drawer
      id={id}
      title={
        <>
          Call of <Exact text={call?.records.at(-1)?.tool ?? id} />
        </>
      }
      beside={call && <Badge word={call.outcome} look={CALL_LOOKS[call.outcome]} />}
      what="call"
      row={call}
      isUnknown={Boolean(found.data ?? found.error)}
    >
      {(row) => <Records call={row} />}
    </Drawer>
  )
}

function Records({ call: { records } }: { call: CallRow }): ReactElement {
  const last = records.at(-1)
  const { run_id: run, session_id: session, seq } = last ?? {}
  return (
    <>
      {last && <Ending record={last} />}
      <p className="row loose call-links">
        {run !== undefined && <a href={linkTo('calls', { run })}>All calls of this run</a>}
        {session !== undefined && <a href={linkTo('calls', { session })}>All calls of this session</a>}
      </p>
      {records.map((record) => (
        <Part
          key={record.seq}
          title={
            <>
              <EventBadge record={record} /> <span className="dim">record {record.seq}</span>
            </>
          }
        >
          <Fields record={record} />
          <InputPreview record={record} />
        </Part>
      ))}
      {run !== undefined && seq !== undefined && (
        <Part title="The run">
          <RunTimeline run={run} seq={seq} />
        </Part>
      )}
    </>
  )
}
