import type { ReactElement } from 'react'
import { count, formatDuration, toSentence } from '../format.ts'
import { changeBefore, type Change, type Trouble } from '../troubles.ts'
import { useChanges, useTroubles } from '../troubles-query.ts'
import type { OverviewBody } from '../wire.ts'
import { Exact } from './exact.tsx'
import { At } from './when.tsx'

/** Shows what is wrong now, since when, and after which change; or that nothing is. */
export function Troubles({ waiting }: { waiting: OverviewBody['waiting'] | undefined }): ReactElement {
  const { troubles, isChecked, unknown } = useTroubles(waiting)
  const changes = useChanges(troubles.length > 0)
  return (
    <section className={`card troubles${troubles.length > 0 ? ' some' : ''}`} aria-labelledby="troubles">
      <div role="status">
        <h2 id="troubles">
          {troubles.length > 0
            ? `${count(troubles.length, 'thing')} ${troubles.length === 1 ? 'needs' : 'need'} a look`
            : isChecked
              ? unknown.length === 0 && 'Nothing is wrong.'
              : 'Checking…'}
        </h2>
      </div>
      {troubles.length > 0 && (
        <ul>
          {troubles.map((trouble) => (
            <OfTrouble key={trouble.key} trouble={trouble} changes={changes} />
          ))}
        </ul>
      )}
      {unknown.length > 0 && <p className="dim">The gateway did not answer about: {unknown.join(', ')}.</p>}
    </section>
  )
}

function OfTrouble({ trouble, changes }: { trouble: Trouble; changes: readonly Change[] }): ReactElement {
  const { what, why = '', sinceMs, href } = trouble
  const change = sinceMs === undefined ? undefined : changeBefore(sinceMs, changes)
  return (
    <li>
      <a href={href} className="strong">
        <Exact text={what} />
      </a>
      {sinceMs !== undefined && (
        <span className="dim">
          {' '}
          since <At at={sinceMs} />
        </span>
      )}
      {why !== '' && (
        <span className="sub">
          <Exact text={toSentence(why)} />
        </span>
      )}
      {change && sinceMs !== undefined && <After change={change} sinceMs={sinceMs} />}
    </li>
  )
}

function After({ change: { what, by, atMs, href }, sinceMs }: { change: Change; sinceMs: number }): ReactElement {
  const early = sinceMs - atMs
  return (
    <span className="sub">
      After{' '}
      <a href={href}>
        <Exact text={what} />
      </a>
      {by !== undefined && (
        <>
          {' '}
          by <Exact text={by} />
        </>
      )}
      {early >= 1000 ? `, ${formatDuration(early)} before.` : ', at the same time.'}
    </span>
  )
}
