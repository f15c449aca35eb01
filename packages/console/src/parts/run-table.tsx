import type { ReactElement } from 'react'
import { linkTo } from '../address.ts'
import { formatNumber } from '../format.ts'
import type { RunRow } from '../wire.ts'
import { Badge } from './badges.tsx'
import { Choice, type Column, None, Opener, TwoLines } from './cells.tsx'
import { Exact } from './exact.tsx'
import { TenantTag } from './tenant-tag.tsx'
import { Ago, At } from './when.tsx'
import { WindowedTable } from './windowed-table.tsx'

export function RunTable({ runs, onEnd }: { runs: readonly RunRow[]; onEnd: () => void }): ReactElement {
  return (
    <WindowedTable
      rows={runs}
      caption="Runs, those with the latest records first"
      columns={COLUMNS}
      className="runs"
      keyOf={runKey}
      narrow={narrow}
      onEnd={onEnd}
    />
  )
}

/** Returns the key of a run. Runs of two tenants may have the same id. */
export function runKey({ kind, tenant = '', id }: Pick<RunRow, 'kind' | 'tenant' | 'id'>): string {
  return [kind, tenant, id].map(encodeURIComponent).join('/')
}

/** Returns the address of the page of runs, with this run open and with a filter. */
export function runLink(run: RunRow, filter: Readonly<Record<string, string>>): string {
  return linkTo('runs', { ...filter, open: runKey(run) })
}

const COLUMNS: readonly Column<RunRow>[] = [
  { name: 'Started', width: '7.5rem', cell: (run) => <Started run={run} /> },
  { name: 'Run', className: 'wraps', cell: (run) => <Name run={run} /> },
  {
    name: 'User',
    width: '14%',
    className: 'wraps',
    cell: ({ user, tenant }) => (
      <>
        <Choice name="user" text={user} /> <TenantTag tenant={tenant} />
      </>
    ),
  },
  {
    name: 'Client',
    className: 'wraps',
    from: 1000,
    cell: ({ client, host }) => <Exact text={client ?? host ?? '–'} className="dim" />,
  },
  { name: 'Calls', width: '4.5rem', isNumber: true, cell: ({ calls }) => formatNumber(calls) },
  {
    name: 'Refused',
    width: '5.5rem',
    isNumber: true,
    cell: ({ refused }) => (refused > 0 ? formatNumber(refused) : <None />),
  },
  { name: 'Last call', width: '7rem', from: 820, cell: ({ lastAt }) => <Ago ms={lastAt} /> },
  { name: 'Labels', from: 900, cell: (run) => <Labels run={run} /> },
  // A run that waits and is open has two badges.
  { name: 'State', width: '12.5rem', className: 'wraps', cell: (run) => <State run={run} /> },
]

function narrow(run: RunRow): ReactElement {
  const { user, tenant, calls, refused } = run
  return (
    <TwoLines
      first={
        <>
          <Started run={run} />
          <Labels run={run} />
        </>
      }
      end={<State run={run} />}
      second={
        <>
          {user !== undefined && <Exact text={user} />}
          <TenantTag tenant={tenant} />
          <span>
            {formatNumber(calls)} calls{refused > 0 && `, ${formatNumber(refused)} refused`}
          </span>
          <Name run={run} />
        </>
      }
    />
  )
}

/** Shows the start time of a run. A press opens the run. */
function Started({ run }: { run: RunRow }): ReactElement {
  const { id, kind, startedAt } = run
  return (
    <Opener id={runKey(run)}>
      <At at={startedAt} />
      <span className="unseen">
        {' '}
        {kind} {id}
      </span>
    </Opener>
  )
}

function Name({ run: { id, kind } }: { run: RunRow }): ReactElement {
  return (
    <>
      <Exact text={id} className="id" />
      {kind === 'session' && <span className="dim"> session</span>}
    </>
  )
}

export function Labels({ run: { labels } }: { run: RunRow }): ReactElement {
  return (
    <span className="marks">
      {labels.map((label) => (
        <Badge key={label} word={label} look={label === 'untrusted' ? 'bad' : 'ask'} />
      ))}
    </span>
  )
}

export function State({ run: { state, end, waiting } }: { run: RunRow }): ReactElement {
  return (
    <span className="marks">
      {waiting > 0 && <Badge word={`${formatNumber(waiting)} waiting`} look="ask" />}
      {state === 'open' && <Badge word="open" look="good" />}
      {state === 'ended' && <span className="dim">{(end ?? 'ended').replaceAll('_', ' ')}</span>}
    </span>
  )
}
