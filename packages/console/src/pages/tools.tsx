import { type ReactElement, useDeferredValue, useEffect, useMemo, useRef } from 'react'
import { callerOf } from '../callers-query.ts'
import { useCallers } from '../callers.ts'
import { count, listsText, toSentence } from '../format.ts'
import { choose, useApi, useBeside, useChoices } from '../hooks.ts'
import { announce } from '../parts/announcer.tsx'
import { CallerChoice } from '../parts/caller-choice.tsx'
import { Exact, Ids } from '../parts/exact.tsx'
import { Chip, NoMatch, SearchField } from '../parts/filters.tsx'
import { Select } from '../parts/form.tsx'
import { Empty, PageHead, Pending } from '../parts/panels.tsx'
import { Split } from '../parts/split.tsx'
import { ToolDrawer } from '../parts/tool-drawer.tsx'
import { ToolListing } from '../parts/tool-listing.tsx'
import { useTools } from '../tools.ts'
import { countOutcomes, isFiltering, OUTCOMES, toSections } from '../tool-list.ts'
import type { AppRow, AppsBody, ItemKind, OutcomeWord, ToolsBody, NeedRow, NeedsBody } from '../wire.ts'
import { StateBadge } from '../parts/badges.tsx'
import { Since } from '../parts/when.tsx'

const REFRESH_MS = 2000

/** Shows the tools that one caller sees, and for every other tool the reason why it is hidden. */
export function ToolsPage(): ReactElement {
  const of = useChoices()
  const callers = useCallers(callerOf(of('as')))
  const apps = useApi<AppsBody>({ key: ['apps'], path: '/api/apps' }).data?.apps ?? NO_APPS
  const [custom, app, kind] = [of('caller'), of('app'), of('kind')]
  const as = of('as') || (custom === '' ? (callers.data?.callers[0]?.user ?? '') : '')
  const isKnown = as !== '' || custom !== ''
  const tools = useTools({ as, caller: custom, app, kind, everyMs: REFRESH_MS, enabled: isKnown })
  const error = tools.error ?? callers.error
  const chosen = apps.find(({ name }) => name === app)
  const refetch = () => Promise.all([callers.refetch(), tools.refetch()])
  return (
    <>
      <PageHead title="Tools" about="The tools that a caller’s agent sees, and why not the others." />
      {callers.data && (
        <div className="toolbar">
          <CallerChoice current={callers.data.callers.find(({ user }) => user === as)} as={as} custom={custom} />
          {apps.length > 0 && <AppChoice apps={apps} value={app} />}
          <Select label="Kind" options={KINDS} value={kind || 'tool'} apply={(to) => choose({ kind: to })} />
          <SearchField name="q" example="name, group, tag or reason" />
          <OutcomeChips counts={tools.data && countOutcomes(tools.data.tools)} />
        </div>
      )}
      {chosen && <AppNeeds app={chosen} />}
      {!error && callers.data?.callers.length === 0 && !isKnown && (
        <Empty title="No callers yet">
          <p>
            Add one under <code>callers:</code> in toolgate.yaml.
          </p>
        </Empty>
      )}
      {(isKnown || !callers.data || error) && (
        <Pending answer={{ data: tools.data, error, refetch }} what="the tools" />
      )}
      {tools.data && (
        <Listing body={tools.data} apps={apps} busy={tools.isPlaceholderData} whose={{ as, caller: custom, app }} />
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
  const of = useChoices()
  const words = useDeferredValue(of('q'))
  const outcome = of('show')
  const open = of('open')
  const isBeside = useBeside()
  const app = apps.find(({ name }) => name === of('app'))
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
    // It is announced after the user's actions, but not after every update.
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
        <NoMatch title={`No ${body.kind} matches`} names={['q', 'show', 'app']} />
      )}
      <Split
        detail={
          open !== '' &&
          isBeside && <ToolDrawer key={open} id={open} held={body.tools.find(({ id }) => id === open)} whose={kept} />
        }
      >
        {sections.length > 0 && <ToolListing kind={body.kind} sections={sections} whose={kept} />}
      </Split>
    </div>
  )
}

function AppChoice({ apps, value }: { apps: readonly AppRow[]; value: string }): ReactElement {
  const options = apps.map(
    ({ name, title = name, tools, available }) => [name, `${title} – ${available} of ${tools.length}`] as const,
  )
  return <Select label="App" options={[['', 'all apps'], ...options]} value={value} apply={(app) => choose({ app })} />
}

const KINDS = (['tool', 'resource', 'template', 'prompt'] satisfies ItemKind[]).map(
  (kind) => [kind, `${kind}s`] as const,
)

function OutcomeChips({ counts }: { counts: Readonly<Record<OutcomeWord, number>> | undefined }): ReactElement {
  return (
    <div className="chips" role="group" aria-label="Show only">
      {OUTCOMES.map((word) => (
        <Chip key={word} value={word} word={word} n={counts?.[word] ?? '–'} look={word} />
      ))}
    </div>
  )
}

/** Shows the requirements of an app's tools. It is open while one is missing, and absent if there are none. */
function AppNeeds({ app }: { app: AppRow }): ReactElement | null {
  const { name, title = name } = app
  const { data } = useApi<NeedsBody>({
    key: ['needs', name],
    path: '/api/needs',
    parameters: { app: name },
    everyMs: REFRESH_MS,
  })
  // Until this app's list arrives, `data` is the previous app's list.
  if (!data || data.app !== name || data.needs.length === 0) return null
  const missing = data.needs.filter(({ state }) => state !== 'available').length
  return (
    <section className={missing > 0 ? 'card needs missing' : 'card needs'} aria-label="Requirements">
      <details open={missing > 0}>
        <summary>
          <Exact text={title} className="strong" /> needs {count(data.needs.length, 'thing')}:{' '}
          {missing === 0 ? 'all available' : `${missing} not available`}
        </summary>
        <ul className="stack loose">
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
      <div className="row needs-head">
        <StateBadge state={state} />
        <Exact text={what} className="strong" />
        {since !== undefined && (
          <span className="dim">
            <Since ms={since} />
          </span>
        )}
        {groups.length > 0 && (
          <span className="dim end">
            {groups.length === 1 ? 'group' : 'groups'} <Ids ids={groups} />
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
