import { useInfiniteQuery } from '@tanstack/react-query'
import { type ReactElement, useCallback, useEffect, useId, useMemo, useState } from 'react'
import { ApiError, getJson } from '../api.ts'
import { AUDIT_OUTCOMES, outcomeOf } from '../audit-feed.ts'
import { CALL_FILTERS, MORE_FILTERS, queryOf, type TimeRange, TIME_RANGES } from '../calls.ts'
import { BATCH_MS } from '../feed.ts'
import { formatNumber, formatTime, plural } from '../format.ts'
import { type Choose, useAddress, useApi } from '../hooks.ts'
import { live } from '../live-updates.ts'
import { CallDrawer } from '../parts/call-drawer.tsx'
import { CallTable } from '../parts/call-table.tsx'
import { Exactly, OneOf } from '../parts/filters.tsx'
import { EvidenceStrip } from '../parts/notices.tsx'
import { Empty, Failed, Loading } from '../parts/panels.tsx'
import type { AuditEvidenceBody, CallsBody } from '../wire.ts'

const PAGE = 200

/** Every call, newest first, with its records: searched by the gateway. */
export function CallsPage(): ReactElement {
  const [{ choices }, choose] = useAddress()
  const texts = JSON.stringify(CALL_FILTERS.map((name) => choices.get(name) ?? ''))
  const isFiltered = CALL_FILTERS.some((name) => (choices.get(name) ?? '') !== '')
  const [round, setRound] = useState(0)
  // A range such as "the last hour" stays what it was until the person asks again.
  const query = useMemo(() => queryOf(choices, Date.now()), [texts, round])
  const found = useCalls(query, round)
  const { data, error, isFetchingNextPage, hasNextPage, fetchNextPage } = found
  const calls = useMemo(() => data?.pages.flatMap((page) => page.calls) ?? [], [data])
  const latest = data?.pages.at(-1)
  const open = choices.get('open') ?? ''
  const loadMore = useCallback(() => {
    // A page without calls was a long search: the person decides whether to go on.
    if (hasNextPage && !isFetchingNextPage && latest && latest.calls.length > 0) void fetchNextPage()
  }, [hasNextPage, isFetchingNextPage, latest, fetchNextPage])
  return (
    <>
      <div className="page-head">
        <h1>Calls</h1>
        <p>One row for each call, with its records.</p>
        <ChainState />
      </div>
      <EvidenceStrip />
      <FilterBar choices={choices} choose={choose} isFiltered={isFiltered} />
      <div className="feed-bar">
        <span className="dim">
          {data &&
            `${formatNumber(calls.length)} ${hasNextPage ? 'newest calls, more below' : plural(calls.length, 'call')}`}
        </span>
        <NewCalls key={`${texts} ${round}`} show={() => setRound(round + 1)} />
        <span className="end exports">
          Export <a href={exportLink(query, 'jsonl')}>JSON lines</a> <a href={exportLink(query, 'csv')}>CSV</a>
        </span>
      </div>
      {error && !data && <Failed error={toApiError(error)} retry={found.refetch} />}
      {!data && !error && <Loading what="the calls" />}
      {data && calls.length === 0 && !hasNextPage && (
        <Empty title={isFiltered ? 'No call matches' : 'No calls yet'}>
          {isFiltered && (
            <button type="button" onClick={() => choose(NO_FILTER)}>
              Clear the filter
            </button>
          )}
        </Empty>
      )}
      {calls.length > 0 && <CallTable key={texts} calls={calls} choose={choose} onEnd={loadMore} />}
      {hasNextPage && (latest?.calls.length === 0 || isFetchingNextPage) && (
        <p className="search-on" role="status">
          {latest?.searchedTo !== undefined &&
            `Searched back to ${formatTime(Date.parse(latest.searchedTo), Date.now())}. `}
          <button type="button" disabled={isFetchingNextPage} onClick={() => void fetchNextPage()}>
            {isFetchingNextPage ? 'Searching…' : 'Search further back'}
          </button>
        </p>
      )}
      {open !== '' && (
        <CallDrawer
          key={open}
          id={open}
          held={calls.find(({ id }) => id === open)}
          close={() => choose({ open: '' })}
        />
      )}
    </>
  )
}

const NO_FILTER: Readonly<Record<string, string>> = Object.fromEntries(CALL_FILTERS.map((name) => [name, '']))

function useCalls(query: Readonly<Record<string, string>>, round: number) {
  return useInfiniteQuery({
    queryKey: ['calls', query, round],
    queryFn: ({ pageParam, signal }) =>
      getJson<CallsBody>('/api/calls', { query: { ...query, limit: PAGE, before: pageParam }, signal }),
    initialPageParam: undefined as number | undefined,
    getNextPageParam: ({ next }) => next,
    // The list moves only when the person asks for it.
    refetchOnWindowFocus: false,
    staleTime: Infinity,
  })
}

function toApiError(error: unknown): ApiError {
  return error instanceof ApiError ? error : new ApiError(0, 'unknown', String(error))
}

function exportLink(query: Readonly<Record<string, string>>, format: string): string {
  return `/api/calls/export?${new URLSearchParams({ ...query, format })}`
}

/** Counts calls that end while the page is open, and shows them when the person asks. */
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

/** How far the chain of the audit is signed. */
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

interface FilterBarProps {
  readonly choices: ReadonlyMap<string, string>
  readonly choose: Choose
  readonly isFiltered: boolean
}

function FilterBar({ choices, choose, isFiltered }: FilterBarProps): ReactElement {
  const of = (name: string): string => choices.get(name) ?? ''
  const isMore = MORE_FILTERS.some(([name]) => of(name) !== '')
  return (
    <>
      <div className="toolbar">
        <OneOf
          label="Time"
          every="any time"
          values={TIME_RANGES}
          value={of('range')}
          apply={(range) => choose({ range, ...(range !== ('from … to' satisfies TimeRange) && { from: '', to: '' }) })}
        />
        {of('range') === 'from … to' && (
          <>
            <Time label="From" value={of('from')} apply={(from) => choose({ from })} />
            <Time label="To" value={of('to')} apply={(to) => choose({ to })} />
          </>
        )}
        <OneOf
          label="Outcome"
          every="all outcomes"
          values={['running', ...AUDIT_OUTCOMES]}
          value={of('outcome')}
          apply={(outcome) => choose({ outcome })}
        />
        <Exactly
          key={`text ${of('text')}`}
          label="Text"
          example="any text"
          value={of('text')}
          apply={(text) => choose({ text })}
          isPart
        />
        <Exactly
          key={`tool ${of('tool')}`}
          label="Tool"
          example="files:read_file"
          value={of('tool')}
          apply={(tool) => choose({ tool })}
        />
        <Exactly
          key={`user ${of('user')}`}
          label="User"
          example="viewer"
          value={of('user')}
          apply={(user) => choose({ user })}
        />
        {isFiltered && (
          <button type="button" className="quiet" onClick={() => choose(NO_FILTER)}>
            Clear
          </button>
        )}
      </div>
      <details className="more-filters" open={isMore || undefined}>
        <summary>All fields</summary>
        <div className="toolbar">
          {MORE_FILTERS.map(([name, label, example]) => (
            <Exactly
              key={`${name} ${of(name)}`}
              label={label}
              example={example}
              isPart={name === 'slower'}
              value={of(name)}
              apply={(value) => choose({ [name]: value })}
            />
          ))}
        </div>
      </details>
    </>
  )
}

function Time({ label, value, apply }: { label: string; value: string; apply: (value: string) => void }): ReactElement {
  const id = useId()
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <input id={id} type="datetime-local" value={value} onChange={(event) => apply(event.target.value)} />
    </div>
  )
}
