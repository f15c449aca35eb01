import { type ReactElement, type CSSProperties, useMemo, useRef } from 'react'
import { count, formatNumber, toSentence } from '../format.ts'
import { choose, useApi, useChoices } from '../hooks.ts'
import { Budgets } from './budgets.tsx'
import { None } from './cells.tsx'
import { FilterBox } from './filter-box.tsx'
import { FilterBar, NoMatch, useIsFiltered } from './filters.tsx'
import { Empty, Pending } from './panels.tsx'
import type { FilterGrammar } from '../filter-text.ts'
import { matrixQuery } from '../people.ts'
import type { MatrixBody, MatrixCell, MatrixRow } from '../wire.ts'
import { useVirtualizer } from '@tanstack/react-virtual'
import { linkTo } from '../address.ts'
import { stateOfGroup } from '../states.ts'
import { DecisionBadge, StateBadge } from './badges.tsx'
import { Exact } from './exact.tsx'

type MatrixColumn = MatrixBody['columns'][number]

const REFRESH_MS = 5000
const FILTERS = ['text', 'tenant', 'role'] as const
const GRAMMAR: FilterGrammar = {
  keys: [
    { name: 'tenant', about: 'the tenant' },
    { name: 'role', about: 'a role of the person' },
  ],
  text: 'text',
}

/** Shows which callers see which tools: groups are rows, callers are columns, and an open group lists its tools. */
export function CallerMatrix(): ReactElement {
  const of = useChoices()
  const isFiltered = useIsFiltered(FILTERS)
  const query = matrixQuery(of)
  const answer = useApi<MatrixBody>({
    key: ['columns', query],
    path: '/api/matrix',
    parameters: query,
    everyMs: REFRESH_MS,
  })
  const { data } = answer
  return (
    <>
      <p className="view-note">
        Each number counts the visible tools of a group. Open a group to see them. People who see the same share a
        column.
      </p>
      <FilterBar names={FILTERS}>
        <FilterBox
          grammar={GRAMMAR}
          example="name, tenant:acme role:clerk"
          seen={(key) => (key === 'tenant' ? data?.tenants : data?.roles) ?? []}
        />
      </FilterBar>
      <Pending answer={answer} what="the callers" />
      {data?.total === 0 && isFiltered && <NoMatch title="Nobody matches" names={FILTERS} />}
      {data?.total === 0 && !isFiltered && (
        <Empty title="No callers yet">
          <p>
            Add one under <code>callers:</code> in toolgate.yaml.
          </p>
        </Empty>
      )}
      {data && data.total > query.limit && <Steps body={data} limit={query.limit} />}
      {data && data.columns.length > 0 && <Matrix body={data} />}
      {data?.open && data.open.more > 0 && (
        <p className="dim">{count(data.open.more, 'more tool')}: the page Tools searches all of them.</p>
      )}
      <Budgets />
    </>
  )
}

/** Buttons for the previous and the next callers. */
function Steps({ body, limit }: { body: MatrixBody; limit: number }): ReactElement {
  const { from, total, columns, people } = body
  const to = (at: number) => () => choose({ from: at > 0 ? String(at) : '' })
  return (
    <div className="toolbar steps" role="group" aria-label="Callers">
      <button type="button" disabled={from === 0} onClick={to(from - limit)}>
        Previous
      </button>
      <span role="status">
        {people > total ? 'Columns' : 'Callers'} {formatNumber(Math.min(from + 1, total))} to{' '}
        {formatNumber(from + columns.length)} of {formatNumber(total)}
        {people > total && `, of ${formatNumber(people)} people and callers`}
      </span>
      <button type="button" disabled={from + columns.length >= total} onClick={to(from + limit)}>
        Next
      </button>
    </div>
  )
}

/** A row of the table: a group, or a tool of an open group. `at`: its index in the answer. */
type MatrixLine = { readonly row: MatrixRow; readonly at: number; readonly tool?: string }

const LINE_PX = 32

/**
 * Shows the table of groups and callers. It renders only the lines on the screen, because an open group may have
 * thousands.
 */
function Matrix({ body }: { body: MatrixBody }): ReactElement {
  const { columns, open } = body
  const lines = useMemo(() => toLines(body), [body])
  const box = useRef<HTMLDivElement>(null)
  const virtual = useVirtualizer({
    count: lines.length,
    getScrollElement: () => box.current,
    estimateSize: () => LINE_PX,
    overscan: 12,
  })
  const items = virtual.getVirtualItems()
  const first = items[0]?.index ?? 0
  const last = items.at(-1)?.index ?? -1
  const shown = useMemo(() => lines.slice(first, last + 1), [lines, first, last])
  const before = items[0]?.start ?? 0
  const after = virtual.getTotalSize() - (items.at(-1)?.end ?? 0)
  return (
    <div ref={box} className="card matrix-box" tabIndex={0} role="region" aria-label="Groups and callers">
      <table
        className="matrix"
        aria-rowcount={lines.length + 1}
        style={{ '--callers': columns.length } as CSSProperties}
      >
        <caption className="unseen">How many tools of each group each caller sees</caption>
        <thead>
          <tr aria-rowindex={1}>
            <th scope="col">Group</th>
            {columns.map((caller, i) => (
              <th key={i} scope="col">
                <CallerHead caller={caller} />
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {before > 0 && <tr aria-hidden="true" style={{ height: before }} />}
          {shown.map((line, i) => (
            <tr
              key={`${line.row.key} ${line.tool ?? ''}`}
              ref={virtual.measureElement}
              data-index={first + i}
              aria-rowindex={first + i + 2}
              className={line.tool === undefined ? 'group-line' : 'tool-line'}
            >
              <th scope="row">
                <RowHead line={line} opened={open?.key ?? ''} />
              </th>
              {columns.map((caller, at) => (
                <td key={at}>
                  <Cell line={line} column={caller} />
                </td>
              ))}
            </tr>
          ))}
          {after > 0 && <tr aria-hidden="true" style={{ height: after }} />}
        </tbody>
      </table>
    </div>
  )
}

function toLines({ rows, open }: MatrixBody): readonly MatrixLine[] {
  return rows.flatMap((row, at): MatrixLine[] => [
    { row, at },
    ...(row.key === open?.key ? open.tools.map((tool, place) => ({ row, at: place, tool })) : []),
  ])
}

function CallerHead({ caller }: { caller: MatrixColumn }): ReactElement {
  const { user, tenant, roles, for: kind, people, names } = caller
  return (
    <>
      <a href={linkTo('tools', { as: user })}>
        <Exact text={user} />
      </a>
      {people > 1 && (
        <span className="sub" title={names.join(', ')}>
          and {count(people - 1, 'other')}
        </span>
      )}
      <span className="dim sub">
        {tenant !== undefined && <Exact text={`of ${tenant} · `} />}
        {kind === 'mcp' ? 'agent' : 'person'}
        {roles.length > 0 && ` · ${roles.join(', ')}`}
      </span>
    </>
  )
}

function RowHead({ line: { row, tool }, opened }: { line: MatrixLine; opened: string }): ReactElement {
  if (tool !== undefined) return <Exact text={tool} className="id" />
  const isOpen = row.key === opened
  return (
    <>
      <button
        type="button"
        className="fold"
        aria-expanded={isOpen}
        onClick={() => choose({ open: isOpen ? '' : row.key })}
      >
        {row.name === '' ? 'No server' : <Exact text={row.title ?? row.name} />}
      </button>
      {row.group && <StateBadge state={stateOfGroup(row.group)} />}
      {!row.group && row.name !== '' && <span className="dim">in no group</span>}
    </>
  )
}

function Cell({
  line: { row, at, tool },
  column: { user, cells, tools },
}: {
  line: MatrixLine
  column: MatrixColumn
}): ReactElement {
  if (tool !== undefined) {
    const decision = tools?.[at]
    if (!decision) return <None />
    return (
      <a href={linkTo('tool', { id: tool, as: user })} title={toSentence(decision.why)}>
        <DecisionBadge outcome={decision.outcome} mayStill={decision.mayStill} />
      </a>
    )
  }
  const cell = cells[at]
  if (!cell) return <None />
  const search = row.group ? `group:${row.name}` : `${row.name}:`
  return (
    <a
      className={`cell ${amountOf(cell)}`}
      href={linkTo('tools', { as: user, q: search })}
      title={toSentence(cell.why)}
    >
      <b>{cell.visible}</b> of {cell.total}
      {cell.asks > 0 && <span className="asks">{cell.asks} ask</span>}
      {cell.depends > 0 && (
        <span className="depends">
          {cell.depends} {cell.depends === 1 ? 'depends' : 'depend'}
        </span>
      )}
    </a>
  )
}

function amountOf({ visible, total }: MatrixCell): string {
  if (visible === 0) return 'none'
  return visible === total ? 'all' : 'some'
}
