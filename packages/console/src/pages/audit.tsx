import { type ReactElement, useId, useState } from 'react'
import { countNewer, EVENTS } from '../audit-feed.ts'
import { useAddress, useApi, useNow, useScrolled } from '../hooks.ts'
import { AuditTable } from '../parts/audit-table.tsx'
import { Empty, Failed, Loading, Stale } from '../parts/panels.tsx'
import type { AuditBody, AuditRecord } from '../wire.ts'

const REFRESH_MS = 2000
const PAGE_SIZE = 100

/** What was attempted, newest first, while it happens. */
export function AuditPage(): ReactElement {
  const [{ choices }, choose] = useAddress()
  const filter = { event: choices.get('event') ?? '', tool: choices.get('tool') ?? '', user: choices.get('user') ?? '' }
  const before = choices.get('before') ?? ''
  const isFiltered = Object.values(filter).some(Boolean)
  const audit = useApi<AuditBody>({
    key: ['audit', filter, before],
    path: '/api/audit',
    parameters: { limit: PAGE_SIZE, ...filter, before },
    everyMs: before === '' ? REFRESH_MS : false,
  })
  return (
    <>
      <div className="page-head">
        <h1>Audit</h1>
        <p>Every attempt to call a tool, and how it ended.</p>
      </div>
      <AuditToolbar filter={filter} choose={(changes) => choose({ ...changes, before: '' })} />
      {audit.error && !audit.data && <Failed error={audit.error} retry={audit.refetch} />}
      {audit.error && audit.data && <Stale error={audit.error} sinceMs={audit.dataUpdatedAt} />}
      {!audit.data && !audit.error && <Loading what="the audit" />}
      {audit.data && audit.data.records.length === 0 && (
        <Empty
          title={isFiltered ? 'No record matches' : before === '' ? 'Nothing was called yet' : 'There is nothing older'}
        >
          {isFiltered ? (
            <button type="button" onClick={() => choose({ event: '', tool: '', user: '', before: '' })}>
              Clear the filter
            </button>
          ) : (
            <p>Point an MCP client at the gateway and call a tool: it shows here within two seconds.</p>
          )}
        </Empty>
      )}
      {audit.data && audit.data.records.length > 0 && (
        <Feed
          key={JSON.stringify([filter, before])}
          latest={audit.data.records}
          isLive={before === ''}
          isStale={audit.isError}
          isBusy={audit.isPlaceholderData}
          isLast={audit.data.records.length < PAGE_SIZE}
          choose={choose}
        />
      )}
    </>
  )
}

interface FeedProps {
  readonly latest: readonly AuditRecord[]
  readonly isLive: boolean
  readonly isStale: boolean
  readonly isBusy: boolean
  readonly isLast: boolean
  readonly choose: (changes: Readonly<Record<string, string>>) => void
}

/** Holds what is on the screen while the reader has paused it, or has scrolled into it, so that nothing jumps. */
function Feed({ latest, isLive, isStale, isBusy, isLast, choose }: FeedProps): ReactElement {
  const [isPaused, setPaused] = useState(false)
  const isScrolled = useScrolled()
  const nowMs = useNow(10_000)
  const [held, setHeld] = useState({ records: latest, isBusy })
  // What is shown while another choice loads is not held: it answers the choice before.
  const isHolding = (isPaused || isScrolled) && !held.isBusy
  if (!isHolding && (held.records !== latest || held.isBusy !== isBusy)) setHeld({ records: latest, isBusy })
  const shown = held.records
  const newer = isLive ? countNewer(shown, latest) : 0

  function showNewest(): void {
    setHeld({ records: latest, isBusy })
    setPaused(false)
    scrollTo({ top: 0 })
  }
  return (
    <div className={isBusy ? 'listing busy' : 'listing'} aria-busy={isBusy}>
      <div className="feed-bar">
        {isLive ? (
          <>
            <button type="button" aria-pressed={isPaused} onClick={() => setPaused(!isPaused)}>
              {isPaused ? 'Go on' : 'Pause'}
            </button>
            <span className={isPaused || newer > 0 || isStale ? 'live paused' : 'live'}>
              {isPaused ? 'Paused' : isStale ? 'Not refreshed' : newer > 0 ? 'Held' : 'Live, every 2 s'}
            </span>
          </>
        ) : (
          <button type="button" onClick={() => choose({ before: '' })}>
            Back to the newest
          </button>
        )}
        {newer > 0 && (
          <button type="button" className="main newer" onClick={showNewest}>
            Show {newer >= latest.length ? `${newer} or more` : newer} new
          </button>
        )}
      </div>
      <AuditTable records={shown} nowMs={nowMs} choose={choose} />
      {!isLast && (
        <button type="button" className="older" onClick={() => showOlder(shown, choose)}>
          Older records
        </button>
      )}
    </div>
  )
}

function showOlder(shown: readonly AuditRecord[], choose: FeedProps['choose']): void {
  const last = shown.at(-1)
  if (!last) return
  choose({ before: String(last.seq) })
  scrollTo({ top: 0 })
}

interface AuditToolbarProps {
  readonly filter: { readonly event: string; readonly tool: string; readonly user: string }
  readonly choose: (changes: Readonly<Record<string, string>>) => void
}

function AuditToolbar({ filter, choose }: AuditToolbarProps): ReactElement {
  const id = useId()
  return (
    <div className="toolbar">
      <div className="field">
        <label htmlFor={`${id}-event`}>Event</label>
        <select id={`${id}-event`} value={filter.event} onChange={(event) => choose({ event: event.target.value })}>
          <option value="">every event</option>
          {EVENTS.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </div>
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
    </div>
  )
}

/** A filter that is compared exactly, so it applies when the reader has finished typing. */
function Exactly(props: {
  label: string
  example: string
  value: string
  apply: (value: string) => void
}): ReactElement {
  const { label, example, value, apply } = props
  const id = useId()
  return (
    <form
      className="field grow"
      onSubmit={(event) => {
        event.preventDefault()
        const typed = new FormData(event.currentTarget).get('value')
        apply(typeof typed === 'string' ? typed.trim() : '')
      }}
    >
      <label htmlFor={id}>{label}, exactly</label>
      <input
        id={id}
        name="value"
        type="search"
        defaultValue={value}
        placeholder={example}
        maxLength={256}
        spellCheck={false}
        onBlur={(event) => event.target.value.trim() !== value && apply(event.target.value.trim())}
      />
    </form>
  )
}
