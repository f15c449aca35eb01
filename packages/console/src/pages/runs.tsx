import { useInfiniteQuery } from '@tanstack/react-query'
import { type ReactElement, useCallback, useDeferredValue, useMemo } from 'react'
import { linkTo } from '../address.ts'
import { getJson } from '../api.ts'
import { queryOf, TIME_RANGES } from '../calls.ts'
import type { FilterGrammar } from '../filter-text.ts'
import { count, formatIn, formatNumber } from '../format.ts'
import { useChoices, useFilter, useNow, useWhileCounting } from '../hooks.ts'
import { Drawer, Fact, Part } from '../parts/drawer.tsx'
import { Exact } from '../parts/exact.tsx'
import { FilterBox, seenIn } from '../parts/filter-box.tsx'
import { FilterBar, NoMatch, OneOf, useIsFiltered } from '../parts/filters.tsx'
import { Empty, PageHead, Pending } from '../parts/panels.tsx'
import { Labels, RunTable, runKey, State } from '../parts/run-table.tsx'
import { RunTimeline } from '../parts/run-timeline.tsx'
import { Split } from '../parts/split.tsx'
import { TenantTag } from '../parts/tenant-tag.tsx'
import { Ago, At, Counting } from '../parts/when.tsx'
import type { RunRow, RunsBody } from '../wire.ts'

const PAGE = 200
const REFRESH_MS = 5000
const FILTERS = ['text', 'user', 'tenant', 'label', 'state', 'range'] as const
const RANGES = TIME_RANGES.slice(0, 2)

/** Shows runs of agents and sessions of clients, with their calls and labels. */
export function RunsPage(): ReactElement {
  const of = useChoices()
  const answer = useRuns(useDeferredValue(useFilter(FILTERS)))
  const { data, hasNextPage, isFetchingNextPage, fetchNextPage, refetch } = answer
  const [first] = data?.pages ?? []
  useWhileCounting(first?.isComplete, refetch)
  const runs = useMemo(() => distinct(data?.pages.flatMap((page) => page.runs) ?? []), [data])
  const loadMore = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage()
  }, [hasNextPage, isFetchingNextPage, fetchNextPage])
  const open = of('open')
  return (
    <>
      <PageHead title="Runs" about="Runs of agents and sessions of clients, of the last week." />
      <Filters labels={first?.labels ?? []} runs={runs} />
      <Pending answer={answer} what="the runs" />
      {first && (
        <p className="row loose feed-bar dim" role="status">
          {(first.isComplete || first.total > 0) && count(first.total, 'run')}
          {!first.isComplete && (
            <span>
              <Counting to={first.countedTo} />
            </span>
          )}
        </p>
      )}
      {first?.isComplete && runs.length === 0 && <NoRuns />}
      <Split
        detail={
          open !== '' && data && <RunDrawer key={open} id={open} run={runs.find((run) => runKey(run) === open)} />
        }
      >
        {runs.length > 0 && <RunTable runs={runs} onEnd={loadMore} />}
      </Split>
    </>
  )
}

function NoRuns(): ReactElement {
  if (useIsFiltered(FILTERS)) return <NoMatch title="No run matches" names={FILTERS} />
  return (
    <Empty title="No runs yet">
      <p>
        A program starts a run for each agent with <code>POST /api/runs</code>; clients of MCP before 2026 have
        sessions. <a href={linkTo('calls')}>Calls</a> without a run are on their own page.
      </p>
    </Empty>
  )
}

function useRuns({ range, ...named }: Readonly<Record<(typeof FILTERS)[number], string>>) {
  // A period such as "the last hour" stays the same until another one is chosen.
  const since = useMemo(() => queryOf(new Map([['range', range]]), Date.now())['since'] ?? '', [range])
  const query = { ...named, since }
  return useInfiniteQuery({
    queryKey: ['runs', query],
    queryFn: ({ pageParam, signal }) =>
      getJson<RunsBody>('/api/runs', { query: { ...query, limit: PAGE, before: pageParam }, signal }),
    initialPageParam: undefined as number | undefined,
    getNextPageParam: ({ next }) => next,
    refetchInterval: REFRESH_MS,
  })
}

/** Removes duplicates. A run with a new record is on the first page, and may also be on a later one. */
function distinct(runs: readonly RunRow[]): readonly RunRow[] {
  return [...new Map(runs.map((run) => [runKey(run), run])).values()]
}

const GRAMMAR: FilterGrammar = {
  keys: [
    { name: 'user', about: 'the user' },
    { name: 'tenant', about: 'the tenant' },
    { name: 'label', about: 'a label of the run' },
    { name: 'state', about: 'whether it is active', values: ['open', 'ended'] },
  ],
  text: 'text',
}

function Filters({ labels, runs }: { labels: readonly string[]; runs: readonly RunRow[] }): ReactElement {
  return (
    <FilterBar names={FILTERS}>
      <OneOf name="range" label="Time" every="the last week" values={RANGES} />
      <FilterBox
        grammar={GRAMMAR}
        example="run, client or host, user:viewer label:untrusted state:open"
        seen={(key) => (key === 'label' ? labels : seenIn(runs, key))}
        isEager
      />
    </FilterBar>
  )
}

function RunDrawer({ id, run }: { id: string; run: RunRow | undefined }): ReactElement {
  const [kind = 'run', tenant = '', name = ''] = id.split('/').map(decodeURIComponent)
  return (
    <Drawer
      id={id}
      title={
        <>
          {kind === 'session' ? 'Session' : 'Run'} <Exact text={name} />
        </>
      }
      beside={<TenantTag tenant={tenant === '' ? undefined : tenant} />}
      isWide
      what="run"
      // Its records are found without its row.
      row={name}
      isUnknown={false}
    >
      {() => (
        <>
          {run && <RunFacts run={run} />}
          <p className="row loose call-links">
            <a href={linkTo('calls', { [kind]: name, tenant })}>All its calls</a>
            {run?.user !== undefined && <a href={linkTo('runs', { user: run.user, tenant })}>All runs of this user</a>}
          </p>
          <Part title="What it did">
            <RunTimeline {...(kind === 'session' ? { session: name } : { run: name })} tenant={tenant} />
          </Part>
        </>
      )}
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
            <Fact key={name} name={name}>
              <Exact text={text} />
            </Fact>
          ),
      )}
      <Fact name="Started">
        <At at={startedAt} />
      </Fact>
      <Fact name="Last call">
        <Ago ms={lastAt} />
      </Fact>
      <Fact name="Calls">
        {formatNumber(calls)}
        {refused > 0 && `, ${formatNumber(refused)} refused`}
        {failed > 0 && `, ${formatNumber(failed)} failed`}
      </Fact>
      <Fact name="State">
        <State run={run} />
        {run.state === 'open' && expiresAt !== undefined && ` ends ${formatIn(expiresAt, nowMs)}`} <Labels run={run} />
      </Fact>
    </dl>
  )
}
