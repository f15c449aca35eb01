import { type ReactElement, useCallback } from 'react'
import { linkTo } from '../address.ts'
import { formatNumber, formatTime } from '../format.ts'
import type { Choose } from '../hooks.ts'
import type { RunRow } from '../wire.ts'
import { Exact } from './exact.tsx'
import { TenantTag } from './tenant-tag.tsx'
import { Ago } from './when.tsx'
import { WindowedTable } from './windowed-table.tsx'

const COLUMNS = ['Started', 'Run', 'User', 'Client', 'Calls', 'Refused', 'Last call', 'Labels', 'State'] as const

interface RunTableProps {
  readonly runs: readonly RunRow[]
  readonly choose: Choose
  readonly onEnd: () => void
}

export function RunTable({ runs, choose, onEnd }: RunTableProps): ReactElement {
  const wide = useCallback((run: RunRow) => <Wide run={run} choose={choose} />, [choose])
  return (
    <WindowedTable
      rows={runs}
      caption="Runs, those with the latest records first"
      columns={COLUMNS}
      prefix="run"
      className="runs"
      keyOf={runKey}
      wide={wide}
      narrow={narrow}
      onEnd={onEnd}
    />
  )
}

/** Runs of two tenants may have one id. */
export function runKey({ kind, tenant = '', id }: Pick<RunRow, 'kind' | 'tenant' | 'id'>): string {
  return [kind, tenant, id].map(encodeURIComponent).join('/')
}

/** Returns the address of the runs with one opened, and with a filter. */
export function runLink(run: RunRow, filter: Readonly<Record<string, string>>): string {
  return linkTo('runs', { ...filter, open: runKey(run) })
}

function Wide({ run, choose }: { run: RunRow; choose: Choose }): ReactElement {
  const { user, tenant, client, host, calls, refused, lastAt } = run
  return (
    <>
      <td>
        <Opener run={run} />
      </td>
      <td>
        <Name run={run} />
      </td>
      <td>
        {user === undefined ? (
          <span className="dim">–</span>
        ) : (
          <button type="button" className="choice" title="Filter by this user" onClick={() => choose({ user })}>
            <Exact text={user} />
          </button>
        )}{' '}
        <TenantTag tenant={tenant} />
      </td>
      <td>
        <Exact text={client ?? host ?? '–'} className="dim" />
      </td>
      <td className="n">{formatNumber(calls)}</td>
      <td className="n">{refused > 0 ? formatNumber(refused) : <span className="dim">–</span>}</td>
      <td>
        <Ago ms={lastAt} />
      </td>
      <td>
        <Labels run={run} />
      </td>
      <td>
        <State run={run} />
      </td>
    </>
  )
}

function narrow(run: RunRow): ReactElement {
  const { user, tenant, calls, refused } = run
  return (
    <>
      <span className="line">
        <Opener run={run} />
        <Labels run={run} />
        <span className="end">
          <State run={run} />
        </span>
      </span>
      <span className="line dim">
        {user !== undefined && <Exact text={user} />}
        <TenantTag tenant={tenant} />
        <span>
          {formatNumber(calls)} calls{refused > 0 && `, ${formatNumber(refused)} refused`}
        </span>
        <Name run={run} />
      </span>
    </>
  )
}

/** The time of its start opens it. */
function Opener({ run }: { run: RunRow }): ReactElement {
  const { id, kind, startedAt } = run
  return (
    <a className="opener" data-focus data-run={runKey(run)} href={hereWith(runKey(run))}>
      <time dateTime={new Date(startedAt).toISOString()}>{formatTime(startedAt, Date.now())}</time>
      <span className="unseen">
        {' '}
        {kind} {id}
      </span>
    </a>
  )
}

/** Returns the current address with the run added, so that the filters stay. */
function hereWith(key: string): string {
  const [, query = ''] = location.hash.split('?')
  const choices = new URLSearchParams(query)
  choices.set('open', key)
  return `#/runs?${choices.toString()}`
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
        <span key={label} className={`badge ${label === 'untrusted' ? 'bad' : 'ask'}`}>
          {label}
        </span>
      ))}
    </span>
  )
}

export function State({ run: { state, end, waiting } }: { run: RunRow }): ReactElement {
  return (
    <span className="marks">
      {waiting > 0 && <span className="badge ask">{formatNumber(waiting)} waiting</span>}
      {state === 'open' && <span className="badge good">open</span>}
      {state === 'ended' && <span className="dim">{(end ?? 'ended').replaceAll('_', ' ')}</span>}
    </span>
  )
}
