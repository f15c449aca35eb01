import { type ReactElement, useCallback, useEffect, useMemo, useState } from 'react'
import { afterFrame } from '../after-frame.ts'
import { ApiError, getJson } from '../api.ts'
import { AUDIT_OUTCOMES, countNewer, EVENTS, FILTER_FIELDS, matchesFilter, type RecordFilter } from '../audit-feed.ts'
import { BATCH_MS, Feed, type FeedSnapshot } from '../feed.ts'
import type { FilterGrammar } from '../filter-text.ts'
import { formatNumber, plural } from '../format.ts'
import { useChoices, useFilter, useLiveState, useScrolled, useStore } from '../hooks.ts'
import { live } from '../live-updates.ts'
import { ChartPanel } from '../parts/chart-panel.tsx'
import { FilterBox, seenIn } from '../parts/filter-box.tsx'
import { FilterBar, NoMatch, useIsFiltered } from '../parts/filters.tsx'
import { EvidenceStrip } from '../parts/notices.tsx'
import { Empty, PageHead, Pending } from '../parts/panels.tsx'
import { RecordDrawer } from '../parts/record-drawer.tsx'
import { RecordTable } from '../parts/record-table.tsx'
import { Split } from '../parts/split.tsx'
import type { AuditBody, AuditRecord } from '../wire.ts'

const REFRESH_MS = 2000
/** The time between fetches, in milliseconds, because a socket may die without an event. */
const SELDOM_MS = 15_000

/** Shows all records as they happen, newest first. */
export function LivePage(): ReactElement {
  const of = useChoices()
  const filter: RecordFilter = useFilter(FILTER_FIELDS)
  const [feed, snapshot] = useFeed(filter)
  const { records, isReady, isEnd, error } = snapshot
  const seq = Number(of('record'))
  const answer = {
    data: isReady,
    error: error instanceof ApiError ? error : null,
    refetch: () => feed.catchUp(),
  }
  return (
    <>
      <PageHead title="Live" about="Every attempt to call a tool, and how it ended." />
      <EvidenceStrip />
      <Filters records={records} />
      <Pending answer={answer} what="the audit" />
      {isReady && records.length > 0 && (
        <ChartPanel records={records} isPart={!isEnd} filter={filter} span={of('span')} />
      )}
      {isReady && records.length === 0 && <NoRecords />}
      <Split
        choice="record"
        detail={seq > 0 && <RecordDrawer key={seq} seq={seq} held={records.find((record) => record.seq === seq)} />}
      >
        {records.length > 0 && <Records key={JSON.stringify(filter)} feed={feed} snapshot={snapshot} />}
      </Split>
    </>
  )
}

function NoRecords(): ReactElement {
  if (useIsFiltered(FILTER_FIELDS)) return <NoMatch title="No record matches" names={FILTER_FIELDS} />
  return (
    <Empty title="No calls yet">
      <p>Connect an MCP client to the gateway and call a tool. The call shows here at once.</p>
    </Empty>
  )
}

const GRAMMAR: FilterGrammar = {
  keys: [
    { name: 'outcome', about: 'how the call ended', values: AUDIT_OUTCOMES },
    { name: 'event', about: 'the event of the record', values: EVENTS },
    { name: 'tool', about: 'the tool', check: checkWhole },
    { name: 'user', about: 'the user' },
    { name: 'session', about: 'the session of a client' },
    { name: 'call', about: 'the id of the call' },
  ],
}

function checkWhole(tool: string): string {
  return tool.includes('*') ? 'Live compares the whole id of a tool: the page Calls takes patterns.' : ''
}

/** The fields of a record whose values are suggested, by the names of the keys. */
const FIELDS: ReadonlyMap<string, keyof AuditRecord> = new Map<string, keyof AuditRecord>([
  ['user', 'user_id'],
  ['session', 'session_id'],
  ['call', 'tool_call_id'],
])

function Filters({ records }: { records: readonly AuditRecord[] }): ReactElement {
  return (
    <FilterBar names={FILTER_FIELDS}>
      <FilterBox
        grammar={GRAMMAR}
        example="user:viewer outcome:refused"
        seen={(key) => seenIn(records, FIELDS.get(key) ?? key)}
      />
    </FilterBar>
  )
}

/** Returns the feed of matching records: fetched first, then updated live. */
function useFeed(filter: RecordFilter): readonly [Feed, FeedSnapshot] {
  const feed = useMemo(
    () =>
      new Feed({
        fetchPage: async (range) =>
          (await getJson<AuditBody>('/api/audit', { query: { ...filter, ...range } })).records,
        matches: (record) => matchesFilter(record, filter),
        later: afterFrame(BATCH_MS),
      }),
    [filter],
  )
  const snapshot = useStore(feed)
  const isFollowed = useLiveState() === 'open' && snapshot.error === undefined
  useEffect(() => {
    const stops = [
      // This runs in the turn in which the socket opens, before any record arrives, so the missed records are older.
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

/** Shows the table of records. It stops updating while it is paused or scrolled, so that rows do not move. */
function Records({ feed, snapshot }: { feed: Feed; snapshot: FeedSnapshot }): ReactElement {
  const { records, isEnd } = snapshot
  const [isPaused, setPaused] = useState(false)
  const isScrolled = useScrolled()
  const isHolding = isPaused || isScrolled
  const [held, setHeld] = useState(records)
  if (!isHolding && held !== records) setHeld(records)
  const newer = isHolding ? countNewer(held, records) : 0
  // Older records are still added, because they move no row.
  const shown = useMemo(() => (newer === 0 ? records : records.slice(newer)), [records, newer])
  const loadOlder = useCallback(() => void feed.loadOlder(), [feed])

  function showNewest(): void {
    setPaused(false)
    setHeld(records)
    scrollTo({ top: 0 })
  }
  return (
    <>
      <div className="row loose feed-bar">
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
      <RecordTable records={shown} onEnd={loadOlder} />
    </>
  )
}
