import { type ReactElement, useState } from 'react'
import { linkTo } from '../address.ts'
import { formatAgo, formatDuration, formatNumber, formatTime, toSentence } from '../format.ts'
import { useAddress, useApi, useWhileCounting } from '../hooks.ts'
import { Attempts, partOf } from '../parts/attempts.tsx'
import { ServerBadge } from '../parts/badges.tsx'
import { Exact } from '../parts/exact.tsx'
import { Empty, Failed, Loading } from '../parts/panels.tsx'
import { TenantTag } from '../parts/tenant-tag.tsx'
import { RowTable } from '../parts/row-table.tsx'
import type { AttemptsRow, LatencyRow, OverviewBody, OverviewPeriod, OverviewServerRow } from '../wire.ts'

const REFRESH_MS = 5000
/** While the gateway still counts. */
const PERIODS: readonly (readonly [OverviewPeriod, string])[] = [
  ['1h', 'hour'],
  ['24h', 'day'],
  ['7d', 'week'],
]

/** What happened in the last hour, day or week, as the gateway counts it. */
export function OverviewPage(): ReactElement {
  const [{ choices }, choose] = useAddress()
  const [period] = PERIODS.find(([name]) => name === choices.get('period')) ?? (['24h'] as const)
  const { data, error, refetch } = useApi<OverviewBody>({
    key: ['overview', period],
    path: '/api/overview',
    parameters: { period },
    everyMs: REFRESH_MS,
  })
  const isCounting = data?.isComplete === false
  useWhileCounting(data?.isComplete, refetch)
  return (
    <>
      <div className="page-head">
        <h1>Overview</h1>
        <p>All calls of the last</p>
        <div className="segmented" role="group" aria-label="Period">
          {PERIODS.map(([name, word]) => (
            <button key={name} type="button" aria-pressed={name === period} onClick={() => choose({ period: name })}>
              {word}
            </button>
          ))}
        </div>
        <p role="status">{isCounting ? 'The audit is still being counted…' : ''}</p>
      </div>
      {error && !data && <Failed error={error} retry={refetch} />}
      {!data && !error && <Loading what="the overview" />}
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
    <div className={isBad ? 'figure bad' : 'figure'}>
      <dt>{name}</dt>
      <dd>
        {value}
        <span className="sub dim">{note}</span>
      </dd>
    </div>
  )
}

const SERVER_COLUMNS = ['Server', 'State', 'Calls', 'Errors', 'p50', 'p95', 'p99', 'Restarts'] as const

function Servers({ rows }: { rows: readonly OverviewServerRow[] }): ReactElement {
  return (
    <section>
      <h2>Servers</h2>
      {rows.length === 0 ? (
        <Empty title="No servers" />
      ) : (
        <RowTable
          label="Servers"
          caption="Servers, those that are down first"
          columns={SERVER_COLUMNS}
          numbers={SERVER_COLUMNS.slice(2)}
          className="keys count"
        >
          {rows.map((row) => (
            <ServerRow key={row.name} row={row} />
          ))}
        </RowTable>
      )}
    </section>
  )
}

function ServerRow({ row }: { row: OverviewServerRow }): ReactElement {
  const { name, status, reason, since, restarts, stderr = [], outcomes } = row
  return (
    <tr>
      <th scope="row">
        <Exact text={name} className="id strong" />
        {reason !== undefined && (
          <span className="sub">
            <Exact text={toSentence(reason)} />
          </span>
        )}
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
      </th>
      <td data-label="State">
        {status ? <ServerBadge status={status} /> : <span className="dim">no server</span>}
        {since !== undefined && <span className="sub dim">since {formatTime(since, Date.now())}</span>}
      </td>
      <Counts row={row} errors={outcomes.failed + outcomes.abandoned} />
      <td data-label="Restarts" className="n">
        {restarts === undefined ? '–' : restarts > 0 ? <b>{formatNumber(restarts)}</b> : '0'}
      </td>
    </tr>
  )
}

function Counts({ row, errors }: { row: AttemptsRow; errors: number }): ReactElement {
  return (
    <>
      <td data-label="Calls" className="n">
        {formatNumber(row.attempts)}
      </td>
      <td data-label="Errors" className={errors > 0 ? 'n bad' : 'n'}>
        {formatNumber(errors)}
        {errors > 0 && <span className="sub">({partOf(errors, row.attempts)})</span>}
      </td>
      <Latencies latency={row.latency} />
    </>
  )
}

function Latencies({ latency }: { latency: LatencyRow | undefined }): ReactElement {
  return (
    <>
      {(['p50', 'p95', 'p99'] as const).map((name) => (
        <td key={name} data-label={name} className="n">
          {latency ? formatDuration(latency[name]) : <span className="dim">–</span>}
        </td>
      ))}
    </>
  )
}

const TOOL_COLUMNS = ['Tool', 'Calls', 'Refused', 'Errors', 'p50', 'p95', 'p99'] as const
const SHOWN = 15

function Tools({ body: { tools, moreTools } }: { body: OverviewBody }): ReactElement {
  const [isAll, setAll] = useState(false)
  const shown = isAll ? tools : tools.slice(0, SHOWN)
  return (
    <section>
      <h2>Tools</h2>
      {tools.length === 0 && <Empty title="No calls in this period" />}
      {tools.length > 0 && (
        <RowTable
          label="Tools"
          caption="Tools, the most called first"
          columns={TOOL_COLUMNS}
          numbers={TOOL_COLUMNS.slice(1)}
          className="keys count"
        >
          {shown.map((row) => (
            <tr key={row.tool ?? ''}>
              <th scope="row">
                <ToolLink tool={row.tool} />
              </th>
              <td data-label="Calls" className="n">
                {formatNumber(row.attempts)}
              </td>
              <td data-label="Refused" className="n">
                {formatNumber(row.outcomes.refused)}
              </td>
              <ErrorsAndLatency row={row} />
            </tr>
          ))}
        </RowTable>
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

function ErrorsAndLatency({ row: { outcomes, attempts, latency } }: { row: AttemptsRow }): ReactElement {
  const errors = outcomes.failed + outcomes.abandoned
  return (
    <>
      <td data-label="Errors" className={errors > 0 ? 'n bad' : 'n'}>
        {formatNumber(errors)}
        {errors > 0 && <span className="sub">({partOf(errors, attempts)})</span>}
      </td>
      <Latencies latency={latency} />
    </>
  )
}

function ToolLink({ tool }: { tool: string | undefined }): ReactElement {
  if (tool === undefined) return <span className="dim">names that no tool has, and others</span>
  return (
    <a href={linkTo('tool', { id: tool })}>
      <Exact text={tool} className="id" />
    </a>
  )
}

const DENIED_COLUMNS = ['Refused', 'For', 'Reason', 'Calls'] as const

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
          columns={DENIED_COLUMNS}
          numbers={DENIED_COLUMNS.slice(3)}
          className="keys count"
        >
          {rows.slice(0, SHOWN).map(({ tool, user, tenant, reason, count }, i) => (
            <tr key={i}>
              <th scope="row">
                <ToolLink tool={tool} />
              </th>
              <td data-label="For">
                <Exact text={user ?? '–'} /> <TenantTag tenant={tenant} />
              </td>
              <td data-label="Reason">
                <Exact text={reason ?? '–'} className="dim" />
              </td>
              <td data-label="Calls" className="n">
                <a href={linkTo('calls', { outcome: 'refused', tool: tool ?? '', user: user ?? '' })}>
                  {formatNumber(count)}
                </a>
              </td>
            </tr>
          ))}
        </RowTable>
      )}
    </section>
  )
}

const LIST_COLUMNS = ['Caller', 'Tools', 'Tokens'] as const

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
          columns={LIST_COLUMNS}
          numbers={LIST_COLUMNS.slice(1)}
          className="keys count"
        >
          {lists.slice(0, SHOWN).map(({ user, tenant, tools, tokens }) => (
            <tr key={`${tenant} ${user}`}>
              <th scope="row">
                <a href={linkTo('tools', { as: user })}>
                  <Exact text={user} />
                </a>{' '}
                <TenantTag tenant={tenant} />
              </th>
              <td data-label="Tools" className="n">
                {formatNumber(tools)}
              </td>
              <td data-label="Tokens" className="n">
                {formatNumber(tokens)}
              </td>
            </tr>
          ))}
        </RowTable>
      )}
      <p className="dim note">
        Estimates: 4 bytes a token.
        {lists.length + moreLists > SHOWN && ` ${formatNumber(lists.length + moreLists - SHOWN)} more callers.`}
      </p>
    </section>
  )
}
