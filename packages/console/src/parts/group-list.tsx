import type { ReactElement } from 'react'
import { count, toSentence } from '../format.ts'
import type { GroupRow } from '../wire.ts'
import { Exact } from './exact.tsx'
import { Ago } from './when.tsx'

/** The groups that depend on something, the unavailable ones first and with what to do. */
export function GroupList({ groups, nowMs }: { groups: readonly GroupRow[]; nowMs: number }): ReactElement | null {
  const conditional = groups.filter(({ visibility, available }) => visibility === 'conditional' || !available)
  if (conditional.length === 0) return null
  const sorted = conditional.toSorted((a, b) => Number(a.available) - Number(b.available))
  return (
    <section className="groups" aria-labelledby="groups-title">
      <h2 id="groups-title">Groups that depend on something</h2>
      <ul>
        {sorted.map((group) => (
          <Group key={group.name} group={group} nowMs={nowMs} />
        ))}
      </ul>
    </section>
  )
}

function Group({ group, nowMs }: { group: GroupRow; nowMs: number }): ReactElement {
  const { name, title, available, reason, suggestion, since, tools } = group
  return (
    <li className={available ? 'group on' : 'group off'}>
      <p className="group-head">
        <Exact text={title ?? name} className="strong" />
        {title !== undefined && <Exact text={name} className="id" />}
        <span className={`state ${available ? 'good' : 'wait'}`}>{available ? 'available' : 'unavailable'}</span>
      </p>
      {!available && reason !== undefined && (
        <p>
          <Exact text={toSentence(reason)} />
        </p>
      )}
      {!available && suggestion !== undefined && (
        <p className="suggestion">
          <Exact text={suggestion} />
        </p>
      )}
      <p className="dim">
        {count(tools.length, 'tool')}
        {since !== undefined && (
          <>
            , since <Ago ms={since} nowMs={nowMs} />
          </>
        )}
      </p>
    </li>
  )
}
