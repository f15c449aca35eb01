import { useInfiniteQuery } from '@tanstack/react-query'
import { type ReactElement, useCallback, useEffect, useMemo, useState } from 'react'
import { linkTo } from '../address.ts'
import { getJson } from '../api.ts'
import { AUDIT_OUTCOMES, outcomeOf } from '../audit-feed.ts'
import { CALL_FILTERS, CALL_KEYS, queryOf, type TimeRange, TIME_RANGES } from '../calls.ts'
import type { FilterGrammar } from '../filter-text.ts'
import { BATCH_MS } from '../feed.ts'
import { formatNumber, formatTime, plural } from '../format.ts'
import { choose, useApi, useChoices, useFilter } from '../hooks.ts'
import { live } from '../live-updates.ts'
import { CallDrawer } from '../parts/call-drawer.tsx'
import { CallTable } from '../parts/call-table.tsx'
import { FilterBox, seenIn } from '../parts/filter-box.tsx'
import { FilterBar, NoMatch, OneOf, useIsFiltered } from '../parts/filters.tsx'
import { Field } from '../parts/form.tsx'
import { Split } from '../parts/split.tsx'
import { EvidenceStrip } from '../parts/notices.tsx'
import { Empty, PageHead, Pending } from '../parts/panels.tsx'
import { At } from '../parts/when.tsx'
import type { AuditEvidenceBody, AuditRecord, CallRow, CallsBody } from '../wire.ts'

const PAGE = 200

/** Shows every call with its records, newest first. The gateway does the search. */
export function CallsPage(): ReactElement {
  const of = useChoices()
  const filter = useFilter(CALL_FILTERS)
  const [round, setRound] = useState(0)
  // A period such as "the last hour" stays the same until the person searches again.
  const query = useMemo(() => queryOf(new Map(Object.entries(filter)), Date.now()), [filter, round])
  const found = useCalls(query, round)
  const { data, isFetchingNextPage, hasNextPage, fetchNextPage } = found
  const calls = useMemo(() => data?.pages.flatMap((page) => page.calls) ?? [], [data])
  const latest = data?.pages.at(-1)
  const open = of('open')
  const loadMore = useCallback(() => {
    // A page without calls took a long search, so the person decides whether to continue.
    if (hasNextPage && !isFetchingNextPage && latest && latest.calls.length > 0) void fetchNextPage()
  }, [hasNextPage, isFetchingNextPage, latest, fetchNextPage])
  const texts = JSON.stringify(filter)
  return (
    <>
      <PageHead title="Calls" about="One row for each call, with its records.">
        <ChainState />
      </PageHead>
      <EvidenceStrip />
      <Filters calls={calls} />
      <div className="row loose feed-bar">
        <span className="dim">
          {data &&
            `${formatNumber(calls.length)} ${hasNextPage ? 'newest calls, more below' : plural(calls.length, 'call')}`}
        </span>
        <NewCalls key={`${texts} ${round}`} show={() => setRound(round + 1)} />
        <span className="row loose end">
          Export <a href={exportLink(query, 'jsonl')}>JSON lines</a> <a href={exportLink(query, 'csv')}>CSV</a>
        </span>
      </div>
      <Pending answer={found} what="the calls" />
      {data && calls.length === 0 && !hasNextPage && <NoCalls />}
      <Split detail={open !== '' && <CallDrawer key={open} id={open} held={calls.find(({ id }) => id === open)} />}>
        {calls.length > 0 && <CallTable key={texts} calls={calls} onEnd={loadMore} />}
        {hasNextPage && (latest?.calls.length === 0 || isFetchingNextPage) && (
          <p className="search-on" role="status">
            {latest?.searchedTo !== undefined && (
              <>
                Searched back to <At at={latest.searchedTo} />.{' '}
              </>
            )}
            <button type="button" disabled={isFetchingNextPage} onClick={() => void fetchNextPage()}>
              {isFetchingNextPage ? 'Searching…' : 'Search further back'}
            </button>
          </p>
        )}
      </Split>
    </>
  )
}

function NoCalls(): ReactElement {
  if (useIsFiltered(CALL_FILTERS)) return <NoMatch title="No call matches" names={CALL_FILTERS} />
  return (
    <Empty title="No calls yet">
      <p>
        Connect an MCP client with a key from <a href={linkTo('people')}>People and keys</a>, or try a tool on{' '}
        <a href={linkTo('tools')}>Tools</a>. Every call shows here.
      </p>
    </Empty>
  )
}

function useCalls(query: Readonly<Record<string, string>>, round: number) {
  return useInfiniteQuery({
    queryKey: ['calls', query, round],
    queryFn: ({ pageParam, signal }) =>
      getJson<CallsBody>('/api/calls', { query: { ...query, limit: PAGE, before: pageParam }, signal }),
    initialPageParam: undefined as number | undefined,
    getNextPageParam: ({ next }) => next,
    // The list changes only when the person asks for it.
    refetchOnWindowFocus: false,
    staleTime: Infinity,
  })
}

function exportLink(query: Readonly<Record<string, string>>, format: string): string {
  return `/api/calls/export?${new URLSearchParams({ ...query, format })}`
}

/** Counts calls that end while the page is open, and shows them on request. */
function NewCalls({ show }: { show: () => void }): ReactElement | null {
  const [newer, setNewer] = useState(0)
  useEffect(() => {
    let arrived = 0
    let timer: ReturnType<typeof setTimeout> | undefined
    const stop = live.onMessage((message) => {
      if (message.type !== 'audit' || outcomeOf(message.record) === undefined) return
      arrived++
      timer ??= setTimeout(() => {
        timer = undefined
        setNewer(arrived)
      }, BATCH_MS)
    })
    return () => {
      stop()
      clearTimeout(timer)
    }
  }, [])
  if (newer === 0) return null
  return (
    <button type="button" className="main" onClick={show}>
      {formatNumber(newer)} new – show
    </button>
  )
}

/** Shows up to which record the audit is signed. */
function ChainState(): ReactElement | null {
  const { data } = useApi<AuditEvidenceBody>({ key: ['audit', 'evidence'], path: '/api/audit/evidence' })
  if (!data) return null
  const { store, checkpoints, problems } = data
  if (problems.length > 0) return <p className="end problem">The audit is not fully proven</p>
  if (!checkpoints)
    return <p className="end">{store === 'memory' ? 'Audit in memory, not signed' : 'Audit not signed'}</p>
  const { signedSeq, signedAt } = checkpoints
  return (
    <p className="end" title="toolgate audit verify checks the records">
      Signed up to record {formatNumber(signedSeq)}
      {signedAt !== undefined && `, ${formatTime(Date.parse(signedAt), Date.now())}`}
    </p>
  )
}

const CHOSEN: TimeRange = 'from … to'

const GRAMMAR: FilterGrammar = {
  keys: [
    { name: 'outcome', about: 'how the call ended', values: ['running', ...AUDIT_OUTCOMES] },
    ...CALL_KEYS.map(([name, about]) => ({ name, about, ...(name === 'slower' && { check: checkWhole }) })),
  ],
  text: 'text',
}

function checkWhole(value: string): string {
  return /^\d{1,12}$/.test(value) ? '' : `“slower” is a whole number of milliseconds, and not “${value}”.`
}

/** The fields of a record whose values are suggested, by the names of the keys. */
const FIELDS: ReadonlyMap<string, keyof AuditRecord> = new Map<string, keyof AuditRecord>([
  ['user', 'user_id'],
  ['session', 'session_id'],
  ['call', 'tool_call_id'],
  ['run', 'run_id'],
  ['chat', 'chat_id'],
  ['approval', 'approval_id'],
  ['trace', 'trace_id'],
])

function Filters({ calls }: { calls: readonly CallRow[] }): ReactElement {
  const of = useChoices()
  return (
    <FilterBar names={CALL_FILTERS}>
      <OneOf
        name="range"
        label="Time"
        every="any time"
        values={TIME_RANGES}
        clears={(range) => (range === CHOSEN ? [] : ['from', 'to'])}
      />
      {of('range') === CHOSEN && (
        <>
          <Time name="from" label="From" />
          <Time name="to" label="To" />
        </>
      )}
      <FilterBox
        grammar={GRAMMAR}
        example='user:viewer outcome:failed tool:files:* "any text"'
        seen={(key) =>
          seenIn(
            calls.flatMap(({ records }) => records.slice(-1)),
            FIELDS.get(key) ?? key,
          )
        }
      />
    </FilterBar>
  )
}

function Time({ name, label }: { name: string; label: string }): ReactElement {
  const value = useChoices()(name)
  return (
    <Field label={label}>
      {(id) => (
        <input
          id={id}
          type="datetime-local"
          value={value}
          onChange={(event) => choose({ [name]: event.target.value })}
        />
      )}
    </Field>
  )
}
