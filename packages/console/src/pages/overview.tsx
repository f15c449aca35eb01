import { type ReactElement, useState } from 'react'
import { linkTo } from '../address.ts'
import { formatAgo, formatDuration, formatNumber, formatTime } from '../format.ts'
import { choose, useApi, useChoices, useWhileCounting } from '../hooks.ts'
import { Attempts, partOf } from '../parts/attempts.tsx'
import { ServerBadge } from '../parts/badges.tsx'
import { type Column, Duration } from '../parts/cells.tsx'
import { Because, Exact } from '../parts/exact.tsx'
import { Segmented } from '../parts/filters.tsx'
import { Empty, PageHead, Pending } from '../parts/panels.tsx'
import { RowTable } from '../parts/row-table.tsx'
import { TenantTag } from '../parts/tenant-tag.tsx'
import { Troubles } from '../parts/troubles.tsx'
import { Counting } from '../parts/when.tsx'
import type { AttemptsRow, OverviewBody, OverviewPeriod, OverviewServerRow } from '../wire.ts'

const REFRESH_MS = 5000
const PERIODS: readonly (readonly [OverviewPeriod, string])[] = [
  ['1h', 'hour'],
  ['24h', 'day'],
  ['7d', 'week'],
]

/** Shows the activity of the last hour, day or week, as the gateway counts it. */
export function OverviewPage(): ReactElement {
  const of = useChoices()
  const [period] = PERIODS.find(([name]) => name === of('period')) ?? (['24h'] as const)
  const answer = useApi<OverviewBody>({
    key: ['overview', period],
    path: '/api/overview',
    parameters: { period },
    everyMs: REFRESH_MS,
  })
  const { data, refetch } = answer
  useWhileCounting(data?.isComplete, refetch)
  return (
    <>
      <PageHead title="Overview" about="All calls of the last">
        <Segmented label="Period" options={PERIODS} value={period} apply={(name) => choose({ period: name })} />
        <p role="status">
          {data?.isComplete === false && (
            <>
              The audit is <Counting to={data.countedTo} />
            </>
          )}
        </p>
      </PageHead>
      <Troubles waiting={data?.waiting} />
      <Pending answer={answer} what="the overview" />
      {data && <Content body={data} />}
    </>
  )
}

function Content({ body }: { body: OverviewBody }): ReactElement {
  return (
    <>
      <Figures body={body} />
      {body.attempts > 0 && <Attempts body={body} />}
      <Servers rows={body.servers} />
      <div className="overview-columns">
        <Tools body={body} />
        <div>
          <Denied rows={body.denied} />
          <Lists body={body} />
        </div>
      </div>
    </>
  )
}

function Figures({ body }: { body: OverviewBody }): ReactElement {
  const { attempts, outcomes, latency, waiting } = body
  const errors = outcomes.failed + outcomes.abandoned
  return (
    <dl className="figures">
      <Figure name="Calls" value={formatNumber(attempts)} />
      <Figure name="Refused" value={formatNumber(outcomes.refused)} note={partOf(outcomes.refused, attempts)} />
      <Figure name="Limited" value={formatNumber(outcomes.limited)} note={partOf(outcomes.limited, attempts)} />
      <Figure name="Errors" value={formatNumber(errors)} note={partOf(errors, attempts)} isBad={errors > 0} />
      <Figure
        name="Waiting now"
        value={<a href={linkTo('approvals')}>{formatNumber(waiting.count)}</a>}
        note={waiting.oldestAt === undefined ? '' : `oldest ${formatAgo(waiting.oldestAt, Date.now())}`}
      />
      <Figure name="Duration, p50" value={latency ? formatDuration(latency.p50) : '–'} note="half take less" />
      <Figure name="Duration, p95" value={latency ? formatDuration(latency.p95) : '–'} note="5 % take longer" />
      <Figure name="Duration, p99" value={latency ? formatDuration(latency.p99) : '–'} note="1 % take longer" />
    </dl>
  )
}

interface FigureProps {
  readonly name: string
  readonly value: ReactElement | string
  readonly note?: string
  readonly isBad?: boolean
}

function Figure({ name, value, note = '', isBad = false }: FigureProps): ReactElement {
  return (
    <div className={isBad ? 'card figure bad' : 'card figure'}>
      <dt>{name}</dt>
      <dd>
        {value}
        <span className="sub dim">{note}</span>
      </dd>
    </div>
  )
}

const SHOWN = 15

function Servers({ rows }: { rows: readonly OverviewServerRow[] }): ReactElement {
  return (
    <section>
      <h2>Servers</h2>
      {rows.length === 0 ? (
        <Empty title="No servers yet">
          <p>
            Add one: <code>toolgate add NAME -- COMMAND</code>.
          </p>
        </Empty>
      ) : (
        <RowTable
          label="Servers"
          caption="Servers, those that are down first"
          rows={rows}
          keyOf={({ name }) => name}
          columns={SERVER_COLUMNS}
          isCompact
        />
      )}
    </section>
  )
}

function errorsOf({ outcomes }: AttemptsRow): number {
  return outcomes.failed + outcomes.abandoned
}

/** The columns of all tables of attempts. */
const CALLS: Column<AttemptsRow> = {
  name: 'Calls',
  isNumber: true,
  cell: ({ attempts }) => formatNumber(attempts),
}
const ERRORS: Column<AttemptsRow> = {
  name: 'Errors',
  isNumber: true,
  className: (row) => (errorsOf(row) > 0 ? 'bad' : ''),
  cell: (row) => (
    <>
      {formatNumber(errorsOf(row))}
      {errorsOf(row) > 0 && <span className="sub">({partOf(errorsOf(row), row.attempts)})</span>}
    </>
  ),
}
const LATENCIES = (['p50', 'p95', 'p99'] as const).map((name): Column<AttemptsRow> => ({
  name,
  isNumber: true,
  cell: ({ latency }) => <Duration ms={latency?.[name]} />,
}))

const SERVER_COLUMNS: readonly Column<OverviewServerRow>[] = [
  { name: 'Server', cell: (row) => <Server row={row} /> },
  {
    name: 'State',
    cell: ({ status, since }) => (
      <>
        {status ? <ServerBadge status={status} /> : <span className="dim">no server</span>}
        {since !== undefined && <span className="sub dim">since {formatTime(since, Date.now())}</span>}
      </>
    ),
  },
  CALLS,
  ERRORS,
  ...LATENCIES,
  {
    name: 'Restarts',
    isNumber: true,
    cell: ({ restarts }) => (restarts === undefined ? '–' : restarts > 0 ? <b>{formatNumber(restarts)}</b> : '0'),
  },
]

function Server({ row: { name, reason, stderr = [] } }: { row: OverviewServerRow }): ReactElement {
  return (
    <>
      <Exact text={name} className="id strong" />
      <Because reason={reason} />
      {stderr.length > 0 && (
        <details className="stderr">
          <summary className="dim">Last lines of stderr</summary>
          <pre tabIndex={0}>
            {stderr.map((line, i) => (
              <span key={i} className="line-of-text">
                <Exact text={line} />
              </span>
            ))}
          </pre>
        </details>
      )}
    </>
  )
}

function Tools({ body: { tools, moreTools } }: { body: OverviewBody }): ReactElement {
  const [isAll, setAll] = useState(false)
  return (
    <section>
      <h2>Tools</h2>
      {tools.length === 0 && (
        <Empty title="No calls in this period">
          <p>Connect an MCP client to the gateway and call a tool, or choose a longer period.</p>
        </Empty>
      )}
      {tools.length > 0 && (
        <RowTable
          label="Tools"
          caption="Tools, the most called first"
          rows={isAll ? tools : tools.slice(0, SHOWN)}
          keyOf={({ tool = '' }) => tool}
          columns={TOOL_COLUMNS}
          isCompact
        />
      )}
      {!isAll && tools.length > SHOWN && (
        <button type="button" className="more" onClick={() => setAll(true)}>
          Show {formatNumber(tools.length - SHOWN)} more
        </button>
      )}
      {isAll && moreTools > 0 && <p className="dim">And {formatNumber(moreTools)} that were called less.</p>}
    </section>
  )
}

const TOOL_COLUMNS: readonly Column<OverviewBody['tools'][number]>[] = [
  { name: 'Tool', cell: ({ tool }) => <ToolLink tool={tool} /> },
  CALLS,
  { name: 'Refused', isNumber: true, cell: ({ outcomes }) => formatNumber(outcomes.refused) },
  ERRORS,
  ...LATENCIES,
]

function ToolLink({ tool }: { tool: string | undefined }): ReactElement {
  if (tool === undefined) return <span className="dim">names that no tool has, and others</span>
  return (
    <a href={linkTo('tool', { id: tool })}>
      <Exact text={tool} className="id" />
    </a>
  )
}

function Denied({ rows }: { rows: OverviewBody['denied'] }): ReactElement {
  return (
    <section>
      <h2>Refused most</h2>
      {rows.length === 0 ? (
        <p className="dim">Nothing was refused.</p>
      ) : (
        <RowTable
          label="Refused most"
          caption="What was refused most"
          rows={rows.slice(0, SHOWN)}
          keyOf={(_, i) => i}
          columns={DENIED_COLUMNS}
          isCompact
        />
      )}
    </section>
  )
}

const DENIED_COLUMNS: readonly Column<OverviewBody['denied'][number]>[] = [
  { name: 'Refused', cell: ({ tool }) => <ToolLink tool={tool} /> },
  {
    name: 'For',
    cell: ({ user, tenant }) => (
      <>
        <Exact text={user ?? '–'} /> <TenantTag tenant={tenant} />
      </>
    ),
  },
  { name: 'Reason', cell: ({ reason }) => <Exact text={reason ?? '–'} className="dim" /> },
  {
    name: 'Calls',
    isNumber: true,
    cell: ({ tool = '', user = '', count }) => (
      <a href={linkTo('calls', { outcome: 'refused', tool, user })}>{formatNumber(count)}</a>
    ),
  },
]

function Lists({ body: { lists, moreLists } }: { body: OverviewBody }): ReactElement {
  return (
    <section>
      <h2>What each list costs</h2>
      {lists.length === 0 ? (
        <p className="dim">No caller is configured.</p>
      ) : (
        <RowTable
          label="What each list costs"
          caption="Tokens of the list of tools of each caller"
          rows={lists.slice(0, SHOWN)}
          keyOf={({ tenant, user }) => `${tenant} ${user}`}
          columns={LIST_COLUMNS}
          isCompact
        />
      )}
      <p className="dim note">
        Estimates: 4 bytes a token.
        {lists.length + moreLists > SHOWN && ` ${formatNumber(lists.length + moreLists - SHOWN)} more callers.`}
      </p>
    </section>
  )
}

const LIST_COLUMNS: readonly Column<OverviewBody['lists'][number]>[] = [
  {
    name: 'Caller',
    cell: ({ user, tenant }) => (
      <>
        <a href={linkTo('tools', { as: user })}>
          <Exact text={user} />
        </a>{' '}
        <TenantTag tenant={tenant} />
      </>
    ),
  },
  { name: 'Tools', isNumber: true, cell: ({ tools }) => formatNumber(tools) },
  { name: 'Tokens', isNumber: true, cell: ({ tokens }) => formatNumber(tokens) },
]
