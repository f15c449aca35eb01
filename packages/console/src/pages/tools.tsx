import { type ReactElement, useDeferredValue, useEffect, useId, useMemo, useRef } from 'react'
import { useCallers } from '../callers.ts'
import { count, listsText, toSentence } from '../format.ts'
import { type Choose, useAddress, useApi } from '../hooks.ts'
import { announce } from '../parts/announcer.tsx'
import { CallerChoice } from '../parts/caller-choice.tsx'
import { Exact } from '../parts/exact.tsx'
import { SearchField } from '../parts/filters.tsx'
import { Empty, Failed, Loading } from '../parts/panels.tsx'
import { ToolListing } from '../parts/tool-listing.tsx'
import { useTools } from '../tools.ts'
import { countOutcomes, isFiltering, OUTCOMES, toSections } from '../tool-list.ts'
import type { AppRow, AppsBody, ItemKind, OutcomeWord, ToolsBody, NeedRow, NeedsBody } from '../wire.ts'
import { StateBadge } from '../parts/badges.tsx'
import { Since } from '../parts/when.tsx'

const REFRESH_MS = 2000

/** The tools that one caller sees, and for every other tool the reason why not. */
export function ToolsPage(): ReactElement {
  const [{ choices }, choose] = useAddress()
  const callers = useCallers()
  const apps = useApi<AppsBody>({ key: ['apps'], path: '/api/apps' }).data?.apps ?? NO_APPS
  const custom = choices.get('caller') ?? ''
  const as = choices.get('as') ?? (custom === '' ? (callers.data?.callers[0]?.user ?? '') : '')
  const app = choices.get('app') ?? ''
  const kind = choices.get('kind') ?? ''
  const isKnown = as !== '' || custom !== ''
  const tools = useTools({ as, caller: custom, app, kind, everyMs: REFRESH_MS, enabled: isKnown })
  const error = tools.error ?? callers.error
  const chosen = apps.find(({ name }) => name === app)
  return (
    <>
      <div className="page-head">
        <h1>Tools</h1>
        <p>The tools that a caller’s agent sees, and why not the others.</p>
      </div>
      {callers.data && (
        <div className="toolbar">
          <CallerChoice callers={callers.data.callers} as={as} custom={custom} choose={choose} />
          {apps.length > 0 && <AppChoice apps={apps} value={choices.get('app') ?? ''} choose={choose} />}
          <KindChoice value={kind} choose={choose} />
          <SearchField
            example="name, group, tag or reason"
            value={choices.get('q') ?? ''}
            apply={(q) => choose({ q })}
          />
          <OutcomeChips
            chosen={choices.get('show') ?? ''}
            counts={tools.data && countOutcomes(tools.data.tools)}
            choose={choose}
          />
        </div>
      )}
      {chosen && <AppNeeds app={chosen} />}
      {error && !tools.data && <Failed error={error} retry={() => Promise.all([callers.refetch(), tools.refetch()])} />}
      {!error && callers.data?.callers.length === 0 && custom === '' && (
        <Empty title="No callers yet">
          <p>
            Add one under <code>callers:</code> in toolgate.yaml.
          </p>
        </Empty>
      )}
      {tools.data ? (
        <Listing body={tools.data} apps={apps} busy={tools.isPlaceholderData} whose={{ as, caller: custom, app }} />
      ) : (
        !error && (isKnown || !callers.data) && <Loading what="the tools" />
      )}
    </>
  )
}

const NO_APPS: readonly AppRow[] = []

interface ListingProps {
  readonly body: ToolsBody
  readonly apps: readonly AppRow[]
  readonly busy: boolean
  readonly whose: { readonly as: string; readonly caller: string; readonly app: string }
}

function Listing({ body, apps, busy, whose }: ListingProps): ReactElement {
  const [{ choices }, choose] = useAddress()
  const words = useDeferredValue(choices.get('q') ?? '')
  const outcome = choices.get('show') ?? ''
  const app = apps.find(({ name }) => name === choices.get('app'))
  const filter = useMemo(() => ({ words, outcome, app }), [words, outcome, app])
  const sections = useMemo(() => toSections(body, filter), [body, filter])
  const { as, caller, app: appName } = whose
  const kept = useMemo(() => ({ as, caller, app: appName }), [as, caller, appName])
  const matching = new Set(sections.flatMap(({ shown }) => shown.map(({ id }) => id))).size
  const seen = body.tools.filter(({ visible }) => visible).length
  const summary = `${body.as} sees ${seen} of ${count(body.tools.length, body.kind)}${isFiltering(filter) ? `; ${matching} match the filter` : ''}.`
  const isFirst = useRef(true)
  useEffect(() => {
    if (!busy && !isFirst.current) announce(summary)
    isFirst.current = false
    // Announced after actions of the reader, not after every update.
  }, [body.as, body.kind, words, outcome, app, busy])
  return (
    <div className={busy ? 'listing busy' : 'listing'} aria-busy={busy}>
      <p className="summary">
        <Exact text={body.as} className="strong" /> sees <b>{seen}</b> of {count(body.tools.length, body.kind)}
        {isFiltering(filter) && `; ${matching} match the filter`}.
        <span className="dim end">
          Policy revision {body.policyRevision} · catalog revision {body.catalogRevision}
        </span>
      </p>
      {body.lists && (
        <p className="dim">
          <Exact text={listsText(body.lists)} />
        </p>
      )}
      {body.tools.length === 0 && (
        <Empty title={`No server has listed a ${body.kind} yet`}>
          <p>The servers and their states are below.</p>
        </Empty>
      )}
      {body.tools.length > 0 && matching === 0 && isFiltering(filter) && (
        <Empty title={`No ${body.kind} matches`}>
          <button type="button" onClick={() => choose({ q: '', show: '', app: '' })}>
            Clear the filter
          </button>
        </Empty>
      )}
      {sections.length > 0 && <ToolListing kind={body.kind} sections={sections} whose={kept} />}
    </div>
  )
}

function AppChoice({ apps, value, choose }: { apps: readonly AppRow[]; value: string; choose: Choose }): ReactElement {
  const id = useId()
  return (
    <div className="field">
      <label htmlFor={id}>App</label>
      <select id={id} value={value} onChange={(event) => choose({ app: event.target.value })}>
        <option value="">all apps</option>
        {apps.map(({ name, title, tools, available }) => (
          <option key={name} value={name}>
            {title ?? name} – {available} of {tools.length}
          </option>
        ))}
      </select>
    </div>
  )
}

const KINDS: readonly ItemKind[] = ['tool', 'resource', 'template', 'prompt']

function KindChoice({ value, choose }: { value: string; choose: Choose }): ReactElement {
  const id = useId()
  return (
    <div className="field">
      <label htmlFor={id}>Kind</label>
      <select id={id} value={value || 'tool'} onChange={(event) => choose({ kind: event.target.value })}>
        {KINDS.map((kind) => (
          <option key={kind} value={kind}>
            {kind}s
          </option>
        ))}
      </select>
    </div>
  )
}

interface OutcomeChipsProps {
  readonly chosen: string
  readonly counts: Readonly<Record<OutcomeWord, number>> | undefined
  readonly choose: Choose
}

function OutcomeChips({ chosen, counts, choose }: OutcomeChipsProps): ReactElement {
  return (
    <div className="chips" role="group" aria-label="Show only">
      {OUTCOMES.map((word) => (
        <button
          key={word}
          type="button"
          className={`chip ${word}`}
          aria-pressed={chosen === word}
          onClick={() => choose({ show: chosen === word ? '' : word })}
        >
          {word} <span className="n">{counts?.[word] ?? '–'}</span>
        </button>
      ))}
    </div>
  )
}

/** The requirements of an app's tools. Open while one is missing, and absent if there are none. */
function AppNeeds({ app }: { app: AppRow }): ReactElement | null {
  const { name, title = name } = app
  const { data } = useApi<NeedsBody>({
    key: ['needs', name],
    path: '/api/needs',
    parameters: { app: name },
    everyMs: REFRESH_MS,
  })
  // Until this app's list arrives, `data` is the list of the app shown before.
  if (!data || data.app !== name || data.needs.length === 0) return null
  const missing = data.needs.filter(({ state }) => state !== 'available').length
  return (
    <section className={missing > 0 ? 'needs missing' : 'needs'} aria-label="Requirements">
      <details open={missing > 0}>
        <summary>
          <Exact text={title} className="strong" /> needs {count(data.needs.length, 'thing')}:{' '}
          {missing === 0 ? 'all available' : `${missing} not available`}
        </summary>
        <ul>
          {data.needs.map((need) => (
            <Needed key={`${need.kind} ${need.what} ${need.groups.join(' ')}`} need={need} />
          ))}
        </ul>
      </details>
    </section>
  )
}

function Needed({ need }: { need: NeedRow }): ReactElement {
  const { what, groups, state, reason, suggestion, since } = need
  return (
    <li>
      <div className="needs-head">
        <StateBadge state={state} />
        <Exact text={what} className="strong" />
        {since !== undefined && (
          <span className="dim">
            <Since ms={since} />
          </span>
        )}
        {groups.length > 0 && (
          <span className="dim end">
            {groups.length === 1 ? 'group' : 'groups'}{' '}
            {groups.map((group, i) => (
              <span key={group}>
                {i > 0 && ', '}
                <Exact text={group} className="id" />
              </span>
            ))}
          </span>
        )}
      </div>
      {(reason !== undefined || suggestion !== undefined) && (
        <p>
          {reason !== undefined && <Exact text={toSentence(reason)} />}{' '}
          {suggestion !== undefined && <Exact text={suggestion} className="suggestion" />}
        </p>
      )}
    </li>
  )
}
