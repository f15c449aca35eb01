import { useQueries } from '@tanstack/react-query'
import { createColumnHelper, FlexRender, tableFeatures, useTable } from '@tanstack/react-table'
import { type ReactElement, useMemo } from 'react'
import { linkTo } from '../address.ts'
import { type ApiError, getJson } from '../api.ts'
import { count, toSentence } from '../format.ts'
import { type Choose, useAddress, useLiveState } from '../hooks.ts'
import { type CallerColumn, type MatrixCell, type MatrixRow, toCell, toColumn, toRows } from '../matrix.ts'
import { OutcomeBadge, StateBadge } from '../parts/badges.tsx'
import { Exact } from '../parts/exact.tsx'
import { Empty, Failed, Loading } from '../parts/panels.tsx'
import { stateOfGroup } from '../states.ts'
import type { CallersBody, ToolsBody } from '../wire.ts'
import { useCallers } from './tools.tsx'

type CallerRow = CallersBody['callers'][number]

/** Each column is a list of all tools: more are asked for when they are wanted. */
const COLUMNS = 12
const REFRESH_MS = 5000
const SELDOM_MS = 30_000

/** Who may see what: groups down, callers across, and the tools of a group where one is opened. */
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
        <p>Who may see what. A number says how many tools of the group are seen; open a group to see which.</p>
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
    </>
  )
}

const NO_CALLERS: readonly CallerRow[] = []

interface Answer {
  readonly column: CallerColumn
  readonly rows: readonly MatrixRow[]
}

/** Asks for each caller's tools, and keeps of each answer only what the matrix shows. */
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
      // Maps are not compared: each answer is a new one.
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

/** A row of the table: a group, or one of its tools where it is open. */
type Line = { readonly row: MatrixRow; readonly tool?: string }

const features = tableFeatures({})
const column = createColumnHelper<typeof features, Line>()

interface MatrixProps {
  readonly rows: readonly MatrixRow[]
  readonly columns: ReadonlyMap<string, CallerColumn>
  readonly callers: readonly CallerRow[]
  readonly opened: string
  readonly choose: Choose
}

function Matrix({ rows, columns, callers, opened, choose }: MatrixProps): ReactElement {
  const lines = useMemo(
    () =>
      rows.flatMap((row): Line[] => [{ row }, ...(row.key === opened ? row.tools.map((tool) => ({ row, tool })) : [])]),
    [rows, opened],
  )
  const defs = useMemo(
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
  const table = useTable({
    features,
    columns: defs,
    data: lines,
    getRowId: ({ row, tool }) => `${row.key} ${tool ?? ''}`,
  })
  return (
    <div className="matrix-box" tabIndex={0} role="region" aria-label="Groups and callers">
      <table className="matrix">
        <caption className="unseen">How many tools of each group each caller sees</caption>
        <thead>
          {table.getHeaderGroups().map((group) => (
            <tr key={group.id}>
              {group.headers.map((header) => (
                <th key={header.id} scope="col">
                  <FlexRender header={header} />
                </th>
              ))}
            </tr>
          ))}
        </thead>
        <tbody>
          {table.getRowModel().rows.map((row) => (
            <tr key={row.id} className={row.original.tool === undefined ? 'group-line' : 'tool-line'}>
              {row.getAllCells().map((cell, i) =>
                i === 0 ? (
                  <th key={cell.id} scope="row">
                    <FlexRender cell={cell} />
                  </th>
                ) : (
                  <td key={cell.id}>
                    <FlexRender cell={cell} />
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function CallerHead({ caller: { user, roles, for: kind } }: { caller: CallerRow }): ReactElement {
  return (
    <>
      <a href={linkTo('tools', { as: user })}>
        <Exact text={user} />
      </a>
      <span className="dim sub">
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
        {row.name === '' ? 'Without a server' : <Exact text={row.title ?? row.name} />}
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
    const stand = known.tools.get(tool)
    if (!stand) return <span className="dim">–</span>
    return (
      <a href={linkTo('tool', { id: tool, as: user })} title={toSentence(stand.why)}>
        <OutcomeBadge outcome={stand.outcome} />
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
