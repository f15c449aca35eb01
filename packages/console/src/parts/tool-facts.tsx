import type { ReactElement } from 'react'
import { linkTo } from '../address.ts'
import { explainRecord } from '../audit-feed.ts'
import { formatDuration, limitText } from '../format.ts'
import { useApi } from '../hooks.ts'
import { pinOf, stateOfTool } from '../states.ts'
import type { AuditBody, ToolBody, ToolRow } from '../wire.ts'
import { DecisionBadge, EventBadge, PinNotes, StateBadge, usePins } from './badges.tsx'
import { Fact, Part } from './drawer.tsx'
import { Exact, Ids } from './exact.tsx'
import { HaltButton } from './halt-dialog.tsx'
import { Failed, Loading } from './panels.tsx'
import { MayStill, Reasons } from './reasons.tsx'
import { Ago } from './when.tsx'

const REFRESH_MS = 2000
const RECENT = 15

export interface ToolProps {
  readonly tool: ToolRow
  /** The tool. Absent if the gateway does not send it. */
  readonly body: ToolBody | undefined
  /** The caller and the app, for links. */
  readonly whose: Readonly<Record<string, string>>
}

/** The level of the headings: `h2` on a page, `h3` in a detail. */
interface Leveled {
  readonly level: 'h2' | 'h3'
}

/** Shows what is decided about a tool, with every rule that may still decide otherwise. */
export function Decision({ tool, body, level }: Omit<ToolProps, 'whose'> & Leveled): ReactElement {
  const state = stateOfTool(tool)
  const pin = pinOf(usePins(), tool)
  return (
    <Part level={level} title="Decision">
      <p className="row">
        <DecisionBadge outcome={tool.outcome} mayStill={tool.mayStill} />
        {state !== undefined && <StateBadge state={state} />}
        <PinNotes pin={pin} />
        <span className="dim">{tool.visible ? 'Listed.' : 'Not listed.'}</span>
      </p>
      <Reasons reasons={tool.reasons} none={tool.mayStill ? undefined : 'No rule denies it or asks about it.'} />
      <MayStill mayStill={body?.mayStill} />
      <HaltButton target={{ tool: tool.id }} label="Halt this tool…" />
    </Part>
  )
}

export function Details({ tool, body, whose, level }: ToolProps & Leveled): ReactElement {
  const { kind, title, wireName, tags, description } = tool
  const { groups = [], limits } = body ?? {}
  return (
    <Part level={level} title="Details">
      <dl className="facts">
        <Fact name="Kind">{kind}</Fact>
        {title !== undefined && (
          <Fact name="Title">
            <Exact text={title} />
          </Fact>
        )}
        <Fact name="Name on the wire">{wireName === '' ? 'none' : <Exact text={wireName} className="id" />}</Fact>
        {tags.length > 0 && (
          <Fact name="Tags">
            <span className="row">
              {tags.map((tag) => (
                <Exact key={tag} text={tag} className="tag" />
              ))}
            </span>
          </Fact>
        )}
        {groups.length > 0 && (
          <Fact name="Groups">
            <Ids ids={groups} linkOf={(group) => linkTo('tools', { q: `group:${group}`, ...whose })} />
          </Fact>
        )}
        {limits && (
          <Fact name="Limits">
            {limits.length === 0 ? 'none' : <Exact text={limits.map(limitText).join(', ')} className="id" />}
          </Fact>
        )}
        <Fact name="Description">
          <Exact text={description === '' ? 'none' : description} className="whole" />
        </Fact>
      </dl>
    </Part>
  )
}

/** Shows the latest records of a tool. */
export function RecentCalls({ tool }: { tool: string }): ReactElement {
  const { data, error } = useApi<AuditBody>({
    key: ['audit', 'recent', tool],
    path: '/api/audit',
    parameters: { tool, limit: RECENT },
    everyMs: REFRESH_MS,
  })
  if (error && !data) return <Failed error={error} />
  if (!data) return <Loading what="the calls" />
  if (data.records.length === 0) return <p className="dim">No calls yet.</p>
  return (
    <>
      <ul className="recent">
        {data.records.map((record) => (
          <li key={record.seq}>
            <EventBadge record={record} />
            <a href={linkTo('live', { tool, record: String(record.seq) })}>
              <Ago ms={Date.parse(record.ts)} />
            </a>
            {record.user_id !== undefined && <Exact text={record.user_id} />}
            <span className="dim">
              {record.duration_ms !== undefined && `${formatDuration(record.duration_ms)} `}
              <Exact text={explainRecord(record)} />
            </span>
          </li>
        ))}
      </ul>
      <a href={linkTo('calls', { tool })}>All calls of it</a>
    </>
  )
}
