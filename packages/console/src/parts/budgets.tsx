import type { ReactElement } from 'react'
import { formatIn, formatNumber } from '../format.ts'
import { useApi, useNow } from '../hooks.ts'
import type { Who } from '../people.ts'
import type { LimitRow, LimitsBody } from '../wire.ts'
import { Exact } from './exact.tsx'
import { RowTable } from './row-table.tsx'

const REFRESH_MS = 5000
const COLUMNS = ['Holder', 'Rule', 'Used', 'Left', 'Some free'] as const

/** What is left of budgets, of all or of one user. Nothing where no limit has a cost, or no call has asked for one. */
export function Budgets({ of }: { of?: Who }): ReactElement | null {
  const { data } = useApi<LimitsBody>({ key: ['limits'], path: '/api/limits', everyMs: REFRESH_MS })
  const nowMs = useNow(REFRESH_MS)
  const rows = data?.limits.filter(({ holder: { user, tenant } }) => !of || (user === of.user && tenant === of.tenant))
  if (!rows || rows.length === 0) return null
  return (
    <section className="budgets" aria-labelledby="budgets">
      <h2 id="budgets">Budgets</h2>
      <RowTable label="The budgets" caption="Budgets, the least left first" columns={COLUMNS}>
        {rows.map((row) => (
          <Row key={JSON.stringify([row.rule, row.limit, row.holder])} row={row} nowMs={nowMs} />
        ))}
      </RowTable>
    </section>
  )
}

function Row({
  row: { rule, holder, used, max, remaining, until },
  nowMs,
}: {
  row: LimitRow
  nowMs: number
}): ReactElement {
  const parts = Object.entries(holder).map(([part, name]) => `${part} ${name}`)
  return (
    <tr>
      <th scope="row">
        <Exact text={parts.length === 0 ? 'everybody' : parts.join(', ')} />
      </th>
      <td data-label="Rule">
        <Exact text={rule} className="id" />
      </td>
      <td data-label="Used">
        {formatNumber(used)} of {formatNumber(max)}{' '}
        <meter min={0} max={max} value={used} aria-label={`Used by ${parts.join(', ') || 'everybody'}`} />
      </td>
      <td data-label="Left">
        <b>{formatNumber(remaining)}</b>
      </td>
      <td data-label="Some free">{until === undefined ? '' : formatIn(until, nowMs)}</td>
    </tr>
  )
}
