import { type ReactElement, useDeferredValue } from 'react'
import { useAddress, useApi, useNow } from '../hooks.ts'
import { Exact } from '../parts/exact.tsx'
import { GroupList } from '../parts/group-list.tsx'
import { Empty, Failed, Loading, Stale } from '../parts/panels.tsx'
import { ServerSection } from '../parts/server-section.tsx'
import { ToolToolbar } from '../parts/tool-toolbar.tsx'
import { countOutcomes, isFiltering, toSections } from '../tool-list.ts'
import type { CallersBody, ToolsBody } from '../wire.ts'

const REFRESH_MS = 3000

/** What one caller sees, and for every other tool the reason why not. */
export function ToolsPage(): ReactElement {
  const [{ choices }, choose] = useAddress()
  const callers = useApi<CallersBody>({ key: ['callers'], path: '/api/callers', everyMs: 4 * REFRESH_MS })
  const as = choices.get('as') ?? callers.data?.callers[0]?.user ?? ''
  const tools = useApi<ToolsBody>({
    key: ['tools', as],
    path: '/api/tools',
    parameters: { as },
    everyMs: REFRESH_MS,
    enabled: as !== '',
  })
  const error = tools.error ?? callers.error
  return (
    <>
      <div className="page-head">
        <h1>Tools</h1>
        <p>What a caller’s agent sees, and why not the rest.</p>
      </div>
      {callers.data && (
        <ToolToolbar
          callers={callers.data.callers}
          as={as}
          words={choices.get('q') ?? ''}
          outcome={choices.get('show') ?? ''}
          counts={tools.data && countOutcomes(tools.data.tools)}
          choose={choose}
        />
      )}
      {error && !tools.data && <Failed error={error} retry={() => Promise.all([callers.refetch(), tools.refetch()])} />}
      {error && tools.data && <Stale error={error} sinceMs={tools.dataUpdatedAt} />}
      {!error && callers.data?.callers.length === 0 && (
        <Empty title="No callers yet">
          <p>
            Add one under <code>callers:</code> in toolgate.yaml.
          </p>
        </Empty>
      )}
      {tools.data ? (
        <Listing body={tools.data} busy={tools.isPlaceholderData} />
      ) : (
        !error && as !== '' && <Loading what="the tools" />
      )}
    </>
  )
}

function Listing({ body, busy }: { body: ToolsBody; busy: boolean }): ReactElement {
  const [{ choices }, choose] = useAddress()
  const nowMs = useNow(1000)
  const words = useDeferredValue(choices.get('q') ?? '')
  const filter = { words, outcome: choices.get('show') ?? '' }
  const sections = toSections(body.tools, body.servers, filter)
  const matching = sections.reduce((sum, { shown }) => sum + shown.length, 0)
  const seen = body.tools.filter(({ visible }) => visible).length
  return (
    <div className={busy ? 'listing busy' : 'listing'} aria-busy={busy}>
      <p className="summary" role="status">
        <Exact text={body.as} className="strong" /> sees <b>{seen}</b> of {body.tools.length} tools
        {isFiltering(filter) && `; ${matching} match${matching === 1 ? 'es' : ''} the filter`}.
      </p>
      <GroupList groups={body.groups} nowMs={nowMs} />
      {body.tools.length === 0 && (
        <Empty title="No server has offered a tool yet">
          <p>They are listed below with what they are doing.</p>
        </Empty>
      )}
      {body.tools.length > 0 && matching === 0 && (
        <Empty title="No tool matches">
          <button type="button" onClick={() => choose({ q: '', show: '' })}>
            Clear the filter
          </button>
        </Empty>
      )}
      {sections.map((section) => (
        <ServerSection key={section.name} section={section} nowMs={nowMs} />
      ))}
      <p className="foot">
        Policy revision {body.policyRevision}, catalog revision {body.catalogRevision}
      </p>
    </div>
  )
}
