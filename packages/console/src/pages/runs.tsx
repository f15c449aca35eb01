import { useInfiniteQuery } from '@tanstack/react-query'
import { type ReactElement, useCallback, useDeferredValue, useMemo } from 'react'
import { linkTo } from '../address.ts'
import { ApiError, getJson } from '../api.ts'
import { queryOf, TIME_RANGES } from '../calls.ts'
import { count, formatIn, formatNumber, formatTime } from '../format.ts'
import { type Choose, useAddress, useNow, useWhileCounting } from '../hooks.ts'
import { Drawer, DrawerPart } from '../parts/drawer.tsx'
import { Exact } from '../parts/exact.tsx'
import { OneOf, SearchField } from '../parts/filters.tsx'
import { Empty, Failed, Loading } from '../parts/panels.tsx'
import { Labels, RunTable, runKey, State } from '../parts/run-table.tsx'
import { RunTimeline } from '../parts/run-timeline.tsx'
import { TenantTag } from '../parts/tenant-tag.tsx'
import { Ago } from '../parts/when.tsx'
import type { RunRow, RunsBody } from '../wire.ts'

const PAGE = 200
const REFRESH_MS = 5000
const NO_FILTER = { text: '', user: '', tenant: '', label: '', state: '', range: '' }
const RANGES = TIME_RANGES.slice(0, 2)

/** Runs of agents, and sessions of clients: what each has done, and with which labels. */
export function RunsPage(): ReactElement {
  const [{ choices }, choose] = useAddress()
  const of = (name: string): string => choices.get(name) ?? ''
  const texts = useDeferredValue(JSON.stringify(Object.keys(NO_FILTER).map(of)))
  const { data, error, hasNextPage, isFetchingNextPage, fetchNextPage, refetch } = useRuns(choices, texts)
  const [first] = data?.pages ?? []
  useWhileCounting(first?.isComplete, refetch)
  const runs = useMemo(() => distinct(data?.pages.flatMap((page) => page.runs) ?? []), [data])
  const loadMore = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage()
  }, [hasNextPage, isFetchingNextPage, fetchNextPage])
  const isFiltered = Object.keys(NO_FILTER).some((name) => of(name) !== '')
  const open = of('open')
  return (
    <>
      <div className="page-head">
        <h1>Runs</h1>
        <p>Runs of agents and sessions of clients, of the last week.</p>
      </div>
      <Filters choices={choices} choose={choose} labels={first?.labels ?? []} isFiltered={isFiltered} />
      {error && !data && <Failed error={toApiError(error)} retry={refetch} />}
      {!data && !error && <Loading what="the runs" />}
      {first && (
        <p className="feed-bar dim" role="status">
          {count(first.total, 'run')}
          {!first.isComplete && ', still counting'}
        </p>
      )}
      {first?.isComplete && runs.length === 0 && (
        <Empty title={isFiltered ? 'No run matches' : 'No runs yet'}>
          {isFiltered ? (
            <button type="button" onClick={() => choose(NO_FILTER)}>
              Clear the filter
            </button>
          ) : (
            <p>
              A program starts a run for each agent with <code>POST /api/runs</code>; clients of MCP before 2026 have
              sessions.
            </p>
          )}
        </Empty>
      )}
      {runs.length > 0 && <RunTable runs={runs} choose={choose} onEnd={loadMore} />}
      {open !== '' && data && (
        <RunDrawer
          key={open}
          id={open}
          run={runs.find((run) => runKey(run) === open)}
          close={() => choose({ open: '' })}
        />
      )}
    </>
  )
}

function useRuns(choices: ReadonlyMap<string, string>, texts: string) {
  const query = useMemo(() => {
    const { since } = queryOf(new Map([['range', choices.get('range') ?? '']]), Date.now())
    const named = ['text', 'user', 'tenant', 'label', 'state'].map((name) => [name, choices.get(name) ?? ''] as const)
    return { ...Object.fromEntries(named), since: since ?? '' }
  }, [texts])
  return useInfiniteQuery({
    queryKey: ['runs', query],
    queryFn: ({ pageParam, signal }) =>
      getJson<RunsBody>('/api/runs', { query: { ...query, limit: PAGE, before: pageParam }, signal }),
    initialPageParam: undefined as number | undefined,
    getNextPageParam: ({ next }) => next,
    refetchInterval: REFRESH_MS,
  })
}

/** A run with a new record is on the first page, and may still be on a later one. */
function distinct(runs: readonly RunRow[]): readonly RunRow[] {
  return [...new Map(runs.map((run) => [runKey(run), run])).values()]
}

function toApiError(error: unknown): ApiError {
  return error instanceof ApiError ? error : new ApiError(0, 'unknown', String(error))
}

interface FiltersProps {
  readonly choices: ReadonlyMap<string, string>
  readonly choose: Choose
  readonly labels: readonly string[]
  readonly isFiltered: boolean
}

function Filters({ choices, choose, labels, isFiltered }: FiltersProps): ReactElement {
  const of = (name: string): string => choices.get(name) ?? ''
  return (
    <div className="toolbar">
      <OneOf
        label="Time"
        every="the last week"
        values={RANGES}
        value={of('range')}
        apply={(range) => choose({ range })}
      />
      <SearchField example="run, user, tenant, client or host" value={of('text')} apply={(text) => choose({ text })} />
      <OneOf
        label="Label"
        every="any labels"
        values={labels}
        value={of('label')}
        apply={(label) => choose({ label })}
      />
      <OneOf
        label="State"
        every="all states"
        values={['open', 'ended']}
        value={of('state')}
        apply={(state) => choose({ state })}
      />
      {(['user', 'tenant'] as const).map(
        (name) =>
          of(name) !== '' && (
            <OneOf
              key={name}
              label={name === 'user' ? 'User' : 'Tenant'}
              every={`all ${name}s`}
              values={[of(name)]}
              value={of(name)}
              apply={(value) => choose({ [name]: value })}
            />
          ),
      )}
      {isFiltered && (
        <button type="button" className="quiet" onClick={() => choose(NO_FILTER)}>
          Clear
        </button>
      )}
    </div>
  )
}

function RunDrawer({ id, run, close }: { id: string; run: RunRow | undefined; close: () => void }): ReactElement {
  const [kind = 'run', tenant = '', name = ''] = id.split('/').map(decodeURIComponent)
  return (
    <Drawer
      title={
        <>
          {kind === 'session' ? 'Session' : 'Run'} <Exact text={name} />
        </>
      }
      beside={<TenantTag tenant={tenant === '' ? undefined : tenant} />}
      isWide
      close={close}
      opener={() => document.querySelector<HTMLElement>(`[data-run="${CSS.escape(id)}"]`)}
    >
      {run && <RunFacts run={run} />}
      <p className="call-links">
        <a href={linkTo('calls', { [kind]: name, tenant })}>All its calls</a>
        {run?.user !== undefined && <a href={linkTo('runs', { user: run.user, tenant })}>All runs of this user</a>}
      </p>
      <DrawerPart title="What it did">
        <RunTimeline {...(kind === 'session' ? { session: name } : { run: name })} tenant={tenant} />
      </DrawerPart>
    </Drawer>
  )
}

function RunFacts({ run }: { run: RunRow }): ReactElement {
  const nowMs = useNow(10_000)
  const { user, client, app, host, parent, narrows, startedAt, lastAt, expiresAt, calls, refused, failed } = run
  const texts = {
    User: user,
    Client: client,
    App: app,
    'Started by': host,
    'Sub-agent of': parent,
    'Narrowed by': narrows,
  }
  return (
    <dl className="facts">
      {Object.entries(texts).map(
        ([name, text]) =>
          text !== undefined && (
            <div key={name} className="fact">
              <dt>{name}</dt>
              <dd>
                <Exact text={text} />
              </dd>
            </div>
          ),
      )}
      <div className="fact">
        <dt>Started</dt>
        <dd>{formatTime(startedAt, nowMs)}</dd>
      </div>
      <div className="fact">
        <dt>Last call</dt>
        <dd>
          <Ago ms={lastAt} />
        </dd>
      </div>
      <div className="fact">
        <dt>Calls</dt>
        <dd>
          {formatNumber(calls)}
          {refused > 0 && `, ${formatNumber(refused)} refused`}
          {failed > 0 && `, ${formatNumber(failed)} failed`}
        </dd>
      </div>
      <div className="fact">
        <dt>State</dt>
        <dd>
          <State run={run} />
          {run.state === 'open' && expiresAt !== undefined && ` ends ${formatIn(expiresAt, nowMs)}`}{' '}
          <Labels run={run} />
        </dd>
      </div>
    </dl>
  )
}
