import { type ReactElement, useCallback, useEffect, useMemo, useState, useSyncExternalStore } from 'react'
import { afterFrame } from '../after-frame.ts'
import { ApiError, getJson } from '../api.ts'
import { AUDIT_OUTCOMES, countNewer, EVENTS, FILTER_FIELDS, matchesFilter, type RecordFilter } from '../audit-feed.ts'
import { BATCH_MS, createFeed, type Feed, type FeedSnapshot } from '../feed.ts'
import { formatNumber, plural } from '../format.ts'
import { type Choose, useAddress, useLiveState, useScrolled } from '../hooks.ts'
import { live } from '../live-updates.ts'
import { ChartPanel } from '../parts/chart-panel.tsx'
import { Exactly, OneOf } from '../parts/filters.tsx'
import { EvidenceStrip } from '../parts/notices.tsx'
import { Empty, Failed, Loading } from '../parts/panels.tsx'
import { RecordDrawer } from '../parts/record-drawer.tsx'
import { RecordTable } from '../parts/record-table.tsx'
import type { AuditBody } from '../wire.ts'

const REFRESH_MS = 2000
/** A socket may have died without an event. */
const SELDOM_MS = 15_000
const NO_FILTER: Readonly<Record<string, string>> = Object.fromEntries(FILTER_FIELDS.map((field) => [field, '']))

/** All records, newest first, as they happen. */
export function LivePage(): ReactElement {
  const [{ choices }, choose] = useAddress()
  const texts = JSON.stringify(FILTER_FIELDS.map((field) => choices.get(field) ?? ''))
  const filter = useMemo(() => toFilter(JSON.parse(texts) as string[]), [texts])
  const isFiltered = Object.values(filter).some(Boolean)
  const [feed, snapshot] = useFeed(filter)
  const { records, isReady, isEnd, error } = snapshot
  const seq = Number(choices.get('record') ?? '')
  const shownError = error instanceof ApiError ? error : undefined
  return (
    <>
      <div className="page-head">
        <h1>Live</h1>
        <p>Every attempt to call a tool, and how it ended.</p>
      </div>
      <EvidenceStrip />
      <FilterBar filter={filter} choose={choose} isFiltered={isFiltered} />
      {shownError && !isReady && <Failed error={shownError} retry={() => feed.catchUp()} />}
      {!isReady && !shownError && <Loading what="the audit" />}
      {isReady && records.length > 0 && (
        <ChartPanel
          records={records}
          isPart={!isEnd}
          filter={filter}
          span={choices.get('span') ?? ''}
          choose={choose}
        />
      )}
      {isReady && records.length === 0 && (
        <Empty title={isFiltered ? 'No record matches' : 'No calls yet'}>
          {isFiltered ? (
            <button type="button" onClick={() => choose(NO_FILTER)}>
              Clear the filter
            </button>
          ) : (
            <p>Connect an MCP client to the gateway and call a tool. The call shows here at once.</p>
          )}
        </Empty>
      )}
      {records.length > 0 && <Records key={texts} feed={feed} snapshot={snapshot} choose={choose} />}
      {seq > 0 && (
        <RecordDrawer
          key={seq}
          seq={seq}
          held={records.find((record) => record.seq === seq)}
          close={() => choose({ record: '' })}
        />
      )}
    </>
  )
}

/** Returns the feed of matching records: fetched, then followed live. */
function useFeed(filter: RecordFilter): readonly [Feed, FeedSnapshot] {
  const feed = useMemo(
    () =>
      createFeed({
        fetchPage: async (range) =>
          (await getJson<AuditBody>('/api/audit', { query: { ...filter, ...range } })).records,
        matches: (record) => matchesFilter(record, filter),
        later: afterFrame(BATCH_MS),
      }),
    [filter],
  )
  const snapshot = useSyncExternalStore(feed.subscribe, () => feed.snapshot)
  const isFollowed = useLiveState() === 'open' && snapshot.error === undefined
  useEffect(() => {
    const stops = [
      // In the turn in which the socket opens, before any record comes: those that were missed meanwhile are older.
      live.subscribe(() => void feed.catchUp()),
      live.onMessage((message) => {
        if (message.type === 'audit') feed.add(message.record)
      }),
    ]
    return () => stops.forEach((stop) => stop())
  }, [feed])
  useEffect(() => {
    void feed.catchUp()
    const timer = setInterval(() => void feed.catchUp(), isFollowed ? SELDOM_MS : REFRESH_MS)
    return () => clearInterval(timer)
  }, [feed, isFollowed])
  return [feed, snapshot]
}

interface RecordsProps {
  readonly feed: Feed
  readonly snapshot: FeedSnapshot
  readonly choose: Choose
}

/** The table of records. It stops updating while it is paused or scrolled, so that nothing jumps. */
function Records({ feed, snapshot, choose }: RecordsProps): ReactElement {
  const { records, isEnd } = snapshot
  const [isPaused, setPaused] = useState(false)
  const isScrolled = useScrolled()
  const isHolding = isPaused || isScrolled
  const [held, setHeld] = useState(records)
  if (!isHolding && held !== records) setHeld(records)
  const newer = isHolding ? countNewer(held, records) : 0
  // Older records are added meanwhile, since they move nothing.
  const shown = useMemo(() => (newer === 0 ? records : records.slice(newer)), [records, newer])
  const loadOlder = useCallback(() => void feed.loadOlder(), [feed])

  function showNewest(): void {
    setPaused(false)
    setHeld(records)
    scrollTo({ top: 0 })
  }
  return (
    <>
      <div className="feed-bar">
        <button type="button" aria-pressed={isPaused} onClick={() => setPaused(!isPaused)}>
          {isPaused ? 'Resume' : 'Pause'}
        </button>
        <span className="dim">
          {isPaused ? 'Paused. ' : newer > 0 ? 'Held while you scroll. ' : ''}
          {formatNumber(shown.length)} {isEnd ? plural(shown.length, 'record') : 'newest records, more below'}
        </span>
        {newer > 0 && (
          <button type="button" className="main newer" onClick={showNewest}>
            Show {formatNumber(newer)} new
          </button>
        )}
      </div>
      <RecordTable records={shown} choose={choose} onEnd={loadOlder} />
    </>
  )
}

interface FilterBarProps {
  readonly filter: RecordFilter
  readonly isFiltered: boolean
  readonly choose: Choose
}

function FilterBar({ filter, isFiltered, choose }: FilterBarProps): ReactElement {
  return (
    <div className="toolbar">
      <OneOf
        label="Event"
        every="all events"
        values={EVENTS}
        value={filter.event}
        apply={(event) => choose({ event })}
      />
      <OneOf
        label="Outcome"
        every="all outcomes"
        values={AUDIT_OUTCOMES}
        value={filter.outcome}
        apply={(outcome) => choose({ outcome })}
      />
      <Exactly
        key={`tool ${filter.tool}`}
        label="Tool"
        example="files:read_file"
        value={filter.tool}
        apply={(tool) => choose({ tool })}
      />
      <Exactly
        key={`user ${filter.user}`}
        label="User"
        example="viewer"
        value={filter.user}
        apply={(user) => choose({ user })}
      />
      <Exactly
        key={`session ${filter.session}`}
        label="Session"
        example="any"
        value={filter.session}
        apply={(session) => choose({ session })}
      />
      {isFiltered && (
        <button type="button" className="quiet" onClick={() => choose(NO_FILTER)}>
          Clear
        </button>
      )}
    </div>
  )
}

function toFilter([
  event = '',
  outcome = '',
  tool = '',
  user = '',
  session = '',
  call = '',
]: readonly string[]): RecordFilter {
  return { event, outcome, tool, user, session, call }
}
