import type { ReactElement } from 'react'
import { formatIn, formatNumber } from '../format.ts'
import { useApi, useNow } from '../hooks.ts'
import type { Who } from '../people.ts'
import type { LimitRow, LimitsBody } from '../wire.ts'
import type { Column } from './cells.tsx'
import { Exact } from './exact.tsx'
import { RowTable } from './row-table.tsx'

const REFRESH_MS = 5000

/** Shows the remaining budgets, of all users or of one. It is empty if no limit has a cost, or no call has used one. */
export function Budgets({ of }: { of?: Who }): ReactElement | null {
  const { data } = useApi<LimitsBody>({ key: ['limits'], path: '/api/limits', everyMs: REFRESH_MS })
  const nowMs = useNow(REFRESH_MS)
  const rows = data?.limits.filter(({ holder: { user, tenant } }) => !of || (user === of.user && tenant === of.tenant))
  if (!rows || rows.length === 0) return null
  return (
    <section className="budgets" aria-labelledby="budgets">
      <h2 id="budgets">Budgets</h2>
      <RowTable
        label="The budgets"
        caption="Budgets, the least left first"
        rows={rows}
        keyOf={({ rule, limit, holder }) => JSON.stringify([rule, limit, holder])}
        columns={columnsAt(nowMs)}
      />
    </section>
  )
}

function columnsAt(nowMs: number): readonly Column<LimitRow>[] {
  return [
    { name: 'Holder', cell: (row) => <Exact text={nameOf(row)} /> },
    { name: 'Rule', cell: ({ rule }) => <Exact text={rule} className="id" /> },
    {
      name: 'Used',
      cell: (row) => (
        <>
          {amountOf(row.used, row)} of {amountOf(row.max, row)}{' '}
          <meter min={0} max={row.max} value={row.used} aria-label={`Used by ${nameOf(row)}`} />
        </>
      ),
    },
    { name: 'Left', width: '11%', cell: (row) => <b>{amountOf(row.remaining, row)}</b> },
    {
      name: 'Some free',
      width: '15rem',
      cell: ({ until }) => (until === undefined ? '' : formatIn(until, nowMs)),
    },
  ]
}

/** Writes an amount in the unit of its limit. */
function amountOf(amount: number, { unit }: LimitRow): string {
  return unit ? `${(amount / 10 ** unit.places).toFixed(unit.places)} ${unit.name}` : formatNumber(amount)
}

function nameOf({ holder }: LimitRow): string {
  const parts = Object.entries(holder).map(([part, name]) => `${part} ${name}`)
  return parts.length === 0 ? 'everybody' : parts.join(', ')
}
