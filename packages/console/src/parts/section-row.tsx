import type { ReactElement, ReactNode } from 'react'
import { count, formatTime, toSentence } from '../format.ts'
import { stateOfGroup } from '../states.ts'
import type { ToolSection } from '../tool-list.ts'
import type { GroupRow, ServerRow } from '../wire.ts'
import { ServerBadge, StateBadge } from './badges.tsx'
import { Exact } from './exact.tsx'
import { Since } from './when.tsx'

export interface SectionRowProps {
  readonly section: ToolSection
  readonly isClosed: boolean
  readonly toggle: (key: string) => void
}

/** The head of a group or a server: what it is like, since when, why, and what to do. */
export function SectionRow({ section, isClosed, toggle }: SectionRowProps): ReactElement {
  const { key, name, group, server, tools } = section
  const seen = tools.filter(({ visible }) => visible).length
  return (
    <div className="section">
      <div className="section-head">
        <h2>
          <button type="button" data-focus className="fold" aria-expanded={!isClosed} onClick={() => toggle(key)}>
            {group?.title !== undefined ? (
              <Exact text={group.title} />
            ) : name === '' ? (
              'Without a server'
            ) : (
              <Exact text={name} />
            )}
          </button>
        </h2>
        {group?.title !== undefined && <Exact text={name} className="id dim" />}
        {group && <StateBadge state={stateOfGroup(group)} />}
        {server && <ServerBadge status={server.status} />}
        <SinceOf group={group} server={server} />
        <span className="dim end">
          {tools.length === 0 ? 'no tools' : `${seen} of ${count(tools.length, 'tool')} visible`}
        </span>
      </div>
      {group && <GroupDetail group={group} />}
      {server && <ServerDetail server={server} />}
    </div>
  )
}

function SinceOf({ group, server }: { group: GroupRow | undefined; server: ServerRow | undefined }): ReactNode {
  const isNotable = group ? group.visibility === 'conditional' : server && server.status !== 'ready'
  const since = group?.since ?? server?.since
  return isNotable && since !== undefined ? (
    <span className="dim">
      <Since ms={since} />
    </span>
  ) : null
}

function GroupDetail({ group }: { group: GroupRow }): ReactElement {
  const { available, reason, suggestion, hint, dependsOn = [], failure } = group
  return (
    <>
      {!available && (reason !== undefined || suggestion !== undefined) && (
        <p className="section-why">
          {reason !== undefined && <Exact text={toSentence(reason)} />}{' '}
          {suggestion !== undefined && <Exact text={suggestion} className="suggestion" />}
        </p>
      )}
      {failure !== undefined && (
        <p className="section-why problem">
          Its tools could not be loaded: <Exact text={toSentence(failure)} />
        </p>
      )}
      {hint !== undefined && (
        <p className="dim">
          <Exact text={hint} />
        </p>
      )}
      {dependsOn.length > 0 && (
        <p className="dim">
          Depends on{' '}
          {dependsOn.map((name, i) => (
            <span key={name}>
              {i > 0 && ', '}
              <Exact text={name} className="id" />
            </span>
          ))}
        </p>
      )}
    </>
  )
}

function ServerDetail({ server }: { server: ServerRow }): ReactElement {
  const { status, reason, rejected, changed } = server
  return (
    <>
      {status !== 'ready' && (
        <p className="section-why">
          <Exact
            text={toSentence(reason ?? (status === 'starting' ? 'it has not answered yet' : 'it gives no reason'))}
          />
        </p>
      )}
      {changed && (
        <p className="section-why">
          <Exact text={`${formatTime(changed.at, Date.now())} · ${toSentence(changed.text)}`} />
        </p>
      )}
      {rejected.length > 0 && (
        <details className="rejected">
          <summary>{count(rejected.length, 'tool')} that it lists cannot be offered</summary>
          <ul>
            {rejected.map(({ tool, reason: why }) => (
              <li key={tool}>
                <Exact text={tool} className="id" /> <Exact text={toSentence(why)} />
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  )
}
