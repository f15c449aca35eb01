import type { ReactElement } from 'react'
import { linkTo } from '../address.ts'
import { count, formatNumber } from '../format.ts'
import type { WhatIfBody } from '../wire.ts'
import { type Column, None } from './cells.tsx'
import { Exact } from './exact.tsx'
import { RowTable } from './row-table.tsx'

const MAX_ROWS = 100

/** Shows which callers would gain and lose access, and which recorded calls would have ended differently. */
export function WhatIfResult({ found }: { found: WhatIfBody }): ReactElement {
  const { calls, same, changed, unknown, drifted, missing, isWhole, callers } = found
  return (
    <section className="stack loose what-if" aria-label="What would change">
      <h2>Who gains and who loses</h2>
      {callers === 0 ? <p className="dim">Nobody gains or loses a tool.</p> : <Access found={found} />}
      <h2>Recorded calls</h2>
      {calls === 0 ? (
        <p className="dim">No recorded call in this time.</p>
      ) : (
        <p>
          Of {count(calls, 'call')}, {formatNumber(same)} would end the same way,{' '}
          <span className="strong">{formatNumber(changed)} otherwise</span>, and {formatNumber(unknown)} cannot be
          judged.
          {drifted > 0 && ` ${count(drifted, 'call')} ended otherwise than the rules in force say now.`}
          {!isWhole && ' There are more than the gateway reads in a minute: "toolgate what-if" reads them all.'}
        </p>
      )}
      {missing > 0 && (
        <p className="strong">
          {count(missing, 'record')} of the audit {missing === 1 ? 'is' : 'are'} missing or cannot be read: their calls
          are not judged. Run "toolgate audit verify".
        </p>
      )}
      {found.rows.length > 0 && <Calls found={found} />}
      {found.rules.some((rule) => rule.unknown > 0) && (
        <ul className="dim">
          {found.rules
            .filter((rule) => rule.unknown > 0)
            .slice(0, MAX_ROWS)
            .map(({ rule, unknown: n }) => (
              <li key={rule}>
                <Exact text={rule} className="id" /> could not judge {count(n, 'call')}.
              </li>
            ))}
        </ul>
      )}
    </section>
  )
}

function Access({ found: { access, callers, notCompared = 0 } }: { found: WhatIfBody }): ReactElement {
  const shown = access.slice(0, MAX_ROWS).reduce((sum, { people = 1 }) => sum + people, 0)
  return (
    <>
      <RowTable
        label="Who gains and who loses"
        caption="Callers that gain or lose something"
        rows={access.slice(0, MAX_ROWS)}
        keyOf={({ caller, gains, loses }) => JSON.stringify([caller, gains, loses])}
        columns={ACCESS_COLUMNS}
      />
      {callers > shown && <p className="dim">and {count(callers - shown, 'other caller')}</p>}
      {notCompared > 0 && <p className="dim">{formatNumber(notCompared)} people are not compared</p>}
    </>
  )
}

const ACCESS_COLUMNS: readonly Column<WhatIfBody['access'][number]>[] = [
  { name: 'Caller', cell: ({ caller }) => <Exact text={caller} className="strong" /> },
  { name: 'Gains', cell: ({ gains, counts }) => <Ids ids={gains} total={counts.gains} /> },
  { name: 'Loses', cell: ({ loses, counts }) => <Ids ids={loses} total={counts.loses} /> },
  { name: 'Not certain', width: '15rem', cell: ({ unknown, counts }) => <Ids ids={unknown} total={counts.unknown} /> },
]

const MAX_IDS = 10

function Ids({ ids, total }: { ids: readonly string[]; total: number }): ReactElement {
  const more = total - Math.min(ids.length, MAX_IDS)
  return (
    <>
      {total === 0 && <None />}
      <Exact text={ids.slice(0, MAX_IDS).join(', ')} className="id" />
      {more > 0 && <span className="dim"> and {formatNumber(more)} more</span>}
    </>
  )
}

function Calls({ found: { rows, unlisted } }: { found: WhatIfBody }): ReactElement {
  const more = Math.max(rows.length - MAX_ROWS, 0)
  return (
    <>
      <RowTable
        label="Calls that would end otherwise"
        caption="Calls that would end otherwise, by caller, tool and rule"
        rows={rows.slice(0, MAX_ROWS)}
        keyOf={(_, i) => i}
        columns={CALL_COLUMNS}
      />
      {more > 0 && <p className="dim">and {count(more, 'other row')}</p>}
      {unlisted > 0 && <p className="dim">and {count(unlisted, 'other call')} that no row has</p>}
    </>
  )
}

const CALL_COLUMNS: readonly Column<WhatIfBody['rows'][number]>[] = [
  { name: 'Caller', cell: ({ caller }) => <Exact text={caller} className="strong" /> },
  { name: 'Tool', cell: ({ tool }) => <Exact text={tool} className="id" /> },
  {
    name: 'Would be',
    cell: ({ from, to }) => (
      <>
        <span className="strong">{to}</span> <span className="dim">instead of {from}</span>
      </>
    ),
  },
  {
    name: 'Calls',
    width: '11%',
    isNumber: true,
    cell: ({ count: n, examples: [example] }) => (
      <>
        {formatNumber(n)}
        {example && (
          <a className="sub" href={linkTo('calls', { call: example.callId })}>
            an example
          </a>
        )}
      </>
    ),
  },
  {
    name: 'Rule',
    // This column has the longest text.
    width: '40%',
    cell: ({ rule, why }) => (
      <>
        <Exact text={rule} className="id" />{' '}
        <span className="dim">
          <Exact text={why} />
        </span>
      </>
    ),
  },
]
