import { useQueries } from '@tanstack/react-query'
import type { ReactElement } from 'react'
import { type ApiError, getJson } from '../api.ts'
import { count } from '../format.ts'
import { useAddress, useLiveState } from '../hooks.ts'
import { type CallerColumn, type MatrixRow, toColumn, toRows } from '../matrix.ts'
import { Matrix } from '../parts/matrix-table.tsx'
import { Empty, Failed, Loading } from '../parts/panels.tsx'
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
