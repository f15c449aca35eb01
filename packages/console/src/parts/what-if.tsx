import type { ReactElement } from 'react'
import { linkTo } from '../address.ts'
import { count, formatNumber } from '../format.ts'
import type { WhatIfBody } from '../wire.ts'
import { Exact } from './exact.tsx'
import { RowTable } from './row-table.tsx'

const MAX_ROWS = 100

/** Who would gain and lose what, and which recorded calls would have ended otherwise. */
export function WhatIfResult({ found }: { found: WhatIfBody }): ReactElement {
  const { calls, same, changed, unknown, drifted, missing, isWhole, callers } = found
  return (
    <section className="what-if" aria-label="What would change">
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

function Access({ found: { access, callers } }: { found: WhatIfBody }): ReactElement {
  return (
    <>
      <RowTable
        label="Who gains and who loses"
        caption="Callers that gain or lose something"
        columns={['Caller', 'Gains', 'Loses', 'Not certain']}
        className="keys what-if-table"
      >
        {access.slice(0, MAX_ROWS).map(({ caller, gains, loses, unknown, counts }) => (
          <tr key={caller}>
            <th scope="row">
              <Exact text={caller} className="strong" />
            </th>
            <Ids label="Gains" ids={gains} total={counts.gains} />
            <Ids label="Loses" ids={loses} total={counts.loses} />
            <Ids label="Not certain" ids={unknown} total={counts.unknown} />
          </tr>
        ))}
      </RowTable>
      {callers > MAX_ROWS && <p className="dim">and {count(callers - MAX_ROWS, 'other caller')}</p>}
    </>
  )
}

const MAX_IDS = 10

function Ids({ label, ids, total }: { label: string; ids: readonly string[]; total: number }): ReactElement {
  const more = total - Math.min(ids.length, MAX_IDS)
  return (
    <td data-label={label}>
      {total === 0 && <span className="dim">–</span>}
      <Exact text={ids.slice(0, MAX_IDS).join(', ')} className="id" />
      {more > 0 && <span className="dim"> and {formatNumber(more)} more</span>}
    </td>
  )
}

function Calls({ found: { rows, unlisted } }: { found: WhatIfBody }): ReactElement {
  const more = Math.max(rows.length - MAX_ROWS, 0)
  return (
    <>
      <RowTable
        label="Calls that would end otherwise"
        caption="Calls that would end otherwise, by caller, tool and rule"
        columns={['Caller', 'Tool', 'Would be', 'Calls', 'Rule']}
        numbers={['Calls']}
        className="keys what-if-table"
      >
        {rows.slice(0, MAX_ROWS).map(({ caller, tool, from, to, rule, why, count: n, examples }, i) => (
          <tr key={i}>
            <th scope="row">
              <Exact text={caller} className="strong" />
            </th>
            <td data-label="Tool">
              <Exact text={tool} className="id" />
            </td>
            <td data-label="Would be">
              <span className="strong">{to}</span> <span className="dim">instead of {from}</span>
            </td>
            <td data-label="Calls" className="n">
              {formatNumber(n)}
              {examples[0] && (
                <a className="sub" href={linkTo('calls', { call: examples[0].callId })}>
                  an example
                </a>
              )}
            </td>
            <td data-label="Rule">
              <Exact text={rule} className="id" />{' '}
              <span className="dim">
                <Exact text={why} />
              </span>
            </td>
          </tr>
        ))}
      </RowTable>
      {more > 0 && <p className="dim">and {count(more, 'other row')}</p>}
      {unlisted > 0 && <p className="dim">and {count(unlisted, 'other call')} that no row has</p>}
    </>
  )
}
