import { useQueries } from '@tanstack/react-query'
import { type ReactElement, type CSSProperties, useMemo, useRef } from 'react'
import { type ApiError, getJson } from '../api.ts'
import { count, toSentence } from '../format.ts'
import { useAddress, useLiveState, type Choose } from '../hooks.ts'
import { type CallerColumn, type MatrixRow, toColumn, toRows, type MatrixCell, toCell } from '../matrix.ts'
import { Budgets } from '../parts/budgets.tsx'
import { Empty, Failed, Loading } from '../parts/panels.tsx'
import type { CallersBody, ToolsBody } from '../wire.ts'
import { useCallers } from '../callers.ts'
import { createColumnHelper, FlexRender, tableFeatures, useTable } from '@tanstack/react-table'
import { useVirtualizer } from '@tanstack/react-virtual'
import { linkTo } from '../address.ts'
import { stateOfGroup } from '../states.ts'
import { OutcomeBadge, StateBadge } from '../parts/badges.tsx'
import { Exact } from '../parts/exact.tsx'

type CallerRow = CallersBody['callers'][number]

/** Each column needs a list of all tools, so more callers are loaded on request. */
const COLUMNS = 12
const REFRESH_MS = 5000
const SELDOM_MS = 30_000

/** Who sees which tools: groups down, callers across, with the tools of the open group. */
export function CallersPage(): ReactElement {
  const [{ choices }, choose] = useAddress()
  const callers = useCallers()
  const all = callers.data?.callers ?? NO_CALLERS
  const shown = all.slice(0, Math.max(COLUMNS, Number(choices.get('n') ?? 0) || 0))
  const { columns, rows, error } = useMatrix(shown)
  return (
    <>
      <div className="page-head">
        <h1>Callers</h1>
        <p>Who sees which tools. Each number counts the visible tools of a group. Open a group to see them.</p>
      </div>
      {(callers.error ?? error) && rows.length === 0 && (
        <Failed error={(callers.error ?? error) as ApiError} retry={callers.refetch} />
      )}
      {callers.data && all.length === 0 && (
        <Empty title="No callers yet">
          <p>
            Add one under <code>callers:</code> in toolgate.yaml.
          </p>
        </Empty>
      )}
      {rows.length > 0 ? (
        <Matrix rows={rows} columns={columns} callers={shown} opened={choices.get('open') ?? ''} choose={choose} />
      ) : (
        !callers.error && !error && (all.length > 0 || !callers.data) && <Loading what="the callers" />
      )}
      {shown.length < all.length && (
        <button type="button" className="more" onClick={() => choose({ n: String(shown.length + COLUMNS) })}>
          {count(Math.min(COLUMNS, all.length - shown.length), 'more caller')}
        </button>
      )}
      <Budgets />
    </>
  )
}

const NO_CALLERS: readonly CallerRow[] = []

interface Answer {
  readonly column: CallerColumn
  readonly rows: readonly MatrixRow[]
}

/** Fetches each caller's tools, and keeps only what the matrix shows. */
function useMatrix(callers: readonly CallerRow[]) {
  const isOpen = useLiveState() === 'open'
  return useQueries({
    queries: callers.map(({ user }) => ({
      queryKey: ['columns', user],
      queryFn: async ({ signal }: { signal: AbortSignal }): Promise<Answer> => {
        const body = await getJson<ToolsBody>('/api/tools', { query: { as: user }, signal })
        return { column: toColumn(user, body.tools), rows: toRows(body) }
      },
      refetchInterval: isOpen ? SELDOM_MS : REFRESH_MS,
      // Maps cannot be compared.
      structuralSharing: false,
    })),
    combine: (results) => ({
      columns: new Map(results.flatMap(({ data }) => (data ? [[data.column.user, data.column] as const] : []))),
      rows: results.find(({ data }) => data)?.data?.rows ?? NO_ROWS,
      error: results.find((result) => result.error)?.error as ApiError | undefined,
    }),
  })
}

const NO_ROWS: readonly MatrixRow[] = []

/** A row of the table: a group, or a tool of an open group. */
type Line = { readonly row: MatrixRow; readonly tool?: string }

const LINE_PX = 32

const features = tableFeatures({})
const column = createColumnHelper<typeof features, Line>()

interface MatrixProps {
  readonly rows: readonly MatrixRow[]
  readonly columns: ReadonlyMap<string, CallerColumn>
  readonly callers: readonly CallerRow[]
  readonly opened: string
  readonly choose: Choose
}

/** The table of groups and callers. Renders only the lines on the screen, since an open group may have thousands. */
function Matrix({ rows, columns, callers, opened, choose }: MatrixProps): ReactElement {
  const lines = useMemo(
    () =>
      rows.flatMap((row): Line[] => [{ row }, ...(row.key === opened ? row.tools.map((tool) => ({ row, tool })) : [])]),
    [rows, opened],
  )
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
  const table = useTable({
    features,
    columns: useColumns({ columns, callers, opened, choose }),
    data: shown,
    getRowId: ({ row, tool }) => `${row.key} ${tool ?? ''}`,
  })
  const before = items[0]?.start ?? 0
  const after = virtual.getTotalSize() - (items.at(-1)?.end ?? 0)
  return (
    <div ref={box} className="matrix-box" tabIndex={0} role="region" aria-label="Groups and callers">
      <table
        className="matrix"
        aria-rowcount={lines.length + 1}
        style={{ '--callers': callers.length } as CSSProperties}
      >
        <caption className="unseen">How many tools of each group each caller sees</caption>
        <thead>
          {table.getHeaderGroups().map((group) => (
            <tr key={group.id} aria-rowindex={1}>
              {group.headers.map((header) => (
                <th key={header.id} scope="col">
                  <FlexRender header={header} />
                </th>
              ))}
            </tr>
          ))}
        </thead>
        <tbody>
          {before > 0 && <tr aria-hidden="true" style={{ height: before }} />}
          {table.getRowModel().rows.map((row, i) => (
            <tr
              key={row.id}
              ref={virtual.measureElement}
              data-index={first + i}
              aria-rowindex={first + i + 2}
              className={row.original.tool === undefined ? 'group-line' : 'tool-line'}
            >
              {row.getAllCells().map((cell, at) => {
                const content = <FlexRender cell={cell} />
                return at === 0 ? (
                  <th key={cell.id} scope="row">
                    {content}
                  </th>
                ) : (
                  <td key={cell.id}>{content}</td>
                )
              })}
            </tr>
          ))}
          {after > 0 && <tr aria-hidden="true" style={{ height: after }} />}
        </tbody>
      </table>
    </div>
  )
}

/** Returns the column of row heads and one column per caller. */
function useColumns({ columns, callers, opened, choose }: Omit<MatrixProps, 'rows'>) {
  return useMemo(
    () =>
      column.columns([
        column.display({
          id: 'row',
          header: 'Group',
          cell: ({ row }) => <RowHead line={row.original} opened={opened} choose={choose} />,
        }),
        ...callers.map((caller, i) =>
          column.display({
            id: `caller ${i}`,
            header: () => <CallerHead caller={caller} />,
            cell: ({ row }) => <Cell line={row.original} user={caller.user} column={columns.get(caller.user)} />,
          }),
        ),
      ]),
    [callers, columns, opened, choose],
  )
}

function CallerHead({ caller: { user, tenant, roles, for: kind } }: { caller: CallerRow }): ReactElement {
  return (
    <>
      <a href={linkTo('tools', { as: user })}>
        <Exact text={user} />
      </a>
      <span className="dim sub">
        {tenant !== undefined && <Exact text={`of ${tenant} · `} />}
        {kind === 'mcp' ? 'agent' : 'person'}
        {roles.length > 0 && ` · ${roles.join(', ')}`}
      </span>
    </>
  )
}

function RowHead({
  line: { row, tool },
  opened,
  choose,
}: {
  line: Line
  opened: string
  choose: Choose
}): ReactElement {
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
  line: { row, tool },
  user,
  column: known,
}: {
  line: Line
  user: string
  column: CallerColumn | undefined
}): ReactElement {
  if (!known) return <span className="dim">…</span>
  if (tool !== undefined) {
    const decision = known.tools.get(tool)
    if (!decision) return <span className="dim">–</span>
    return (
      <a href={linkTo('tool', { id: tool, as: user })} title={toSentence(decision.why)}>
        <OutcomeBadge outcome={decision.outcome} />
      </a>
    )
  }
  const cell = toCell(known, row.tools)
  const search = row.group ? `group:${row.name}` : `${row.name}:`
  return (
    <a
      className={`cell ${amountOf(cell)}`}
      href={linkTo('tools', { as: user, q: search })}
      title={toSentence(cell.why)}
    >
      <b>{cell.visible}</b> of {cell.total}
      {cell.asks > 0 && <span className="asks">{cell.asks} ask</span>}
    </a>
  )
}

function amountOf({ visible, total }: MatrixCell): string {
  if (visible === 0) return 'none'
  return visible === total ? 'all' : 'some'
}
