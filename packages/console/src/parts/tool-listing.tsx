import { useWindowVirtualizer } from '@tanstack/react-virtual'
import { type ReactElement, useCallback, useMemo, useRef, useState, type ReactNode, memo } from 'react'
import { useBeside, useTop } from '../hooks.ts'
import { moveByKeys } from '../row-keys.ts'
import { type ListItem, toItems, toName, type ToolSection } from '../tool-list.ts'
import { usePins, PinNotes, ServerBadge, StateBadge, Depends, OutcomeBadge } from './badges.tsx'
import { count, formatTime, instancesText, toSentence } from '../format.ts'
import { pinOf, stateOfGroup, stateOfTool } from '../states.ts'
import type { GroupRow, ItemKind, ServerInstances, ServerRow, PinRow, Reason, ToolRow as Tool } from '../wire.ts'
import { Opener } from './cells.tsx'
import { Exact, Ids, Phrase } from './exact.tsx'
import { Since } from './when.tsx'
import { linkTo } from '../address.ts'

interface ToolListingProps {
  readonly kind: ItemKind
  readonly sections: readonly ToolSection[]
  readonly whose: Readonly<Record<string, string>>
}

const HEAD_PX = 46
const TOOL_PX = 55
const LINE_PX = 21

/** Shows all sections and tools. It renders only those on the screen. */
export function ToolListing({ kind, sections, whose }: ToolListingProps): ReactElement {
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set())
  const items = useMemo(() => toItems(sections, closed), [sections, closed])
  const isBeside = useBeside()
  const address = isBeside ? location.hash : ''
  const known = usePins()
  const pins = useMemo(() => Map.groupBy(known, (pin) => pin.tool), [known])
  const list = useRef<HTMLUListElement>(null)
  const top = useTop(list)
  const rows = useWindowVirtualizer({
    count: items.length,
    estimateSize: (i) => estimate(items[i]),
    getItemKey: (i) => items[i]?.key ?? i,
    overscan: 10,
    scrollMargin: top,
    // The height of the header, which stays at the top.
    scrollPaddingStart: 56,
  })
  const toggle = useCallback((key: string) => {
    setClosed((before) => {
      const next = new Set(before)
      if (!next.delete(key)) next.add(key)
      return next
    })
  }, [])
  return (
    <ul
      ref={list}
      className="listing-rows"
      style={{ height: rows.getTotalSize() }}
      onKeyDown={(event) => moveByKeys(event, rows)}
      aria-label="Groups and tools"
    >
      {rows.getVirtualItems().map(({ index, key, start }) => {
        const item = items[index]
        if (!item) return null
        return (
          <li
            key={key}
            ref={rows.measureElement}
            data-index={index}
            aria-setsize={items.length}
            aria-posinset={index + 1}
            className={`row-${item.kind}`}
            style={{ transform: `translateY(${start - top}px)` }}
          >
            {item.kind === 'section' ? (
              <SectionRow kind={kind} section={item.section} isClosed={closed.has(item.key)} toggle={toggle} />
            ) : (
              <ToolRow
                tool={item.tool}
                group={item.group}
                isLast={item.isLast}
                pin={pinOf(pins.get(item.tool.id) ?? [], item.tool)}
                whose={whose}
                isBeside={isBeside}
                address={address}
              />
            )}
          </li>
        )
      })}
    </ul>
  )
}

/** Returns the estimated height of a row, so that measuring moves little. */
function estimate(item: ListItem | undefined): number {
  if (item?.kind === 'tool') return TOOL_PX + (item.tool.reasons.length > 0 ? LINE_PX : 0)
  const { reason, elsewhere } = item?.section.group ?? {}
  return HEAD_PX + (reason === undefined ? 0 : LINE_PX) + (elsewhere === undefined ? 0 : LINE_PX)
}

interface SectionRowProps {
  readonly kind: ItemKind
  readonly section: ToolSection
  readonly isClosed: boolean
  readonly toggle: (key: string) => void
}

/** Shows the header of a group or a server: its state, since when, why, and what to do about it. */
function SectionRow({ kind, section, isClosed, toggle }: SectionRowProps): ReactElement {
  const { key, name, group, server, tools } = section
  const seen = tools.filter(({ visible }) => visible).length
  return (
    <div className="section">
      <div className="row section-head">
        <h2>
          <button type="button" data-focus className="fold" aria-expanded={!isClosed} onClick={() => toggle(key)}>
            {group?.title !== undefined ? (
              <Exact text={group.title} />
            ) : name === '' ? (
              'No server'
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
          {tools.length === 0 ? `no ${kind}s` : `${seen} of ${count(tools.length, kind)} visible`}
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
  const { available, reason, suggestion, hint, dependsOn = [], failure, replica, elsewhere = [] } = group
  return (
    <>
      {elsewhere.length > 0 && (
        <p className="section-why">
          This is its state at <Exact text={replica ?? 'this replica'} />.{' '}
          {elsewhere.map(({ replica: other, badge, reason: why }) => (
            <span key={other}>
              At <Exact text={other} />: {badge}
              <Phrase before=", " text={why} />.{' '}
            </span>
          ))}
        </p>
      )}
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
          Depends on <Ids ids={dependsOn} />
        </p>
      )}
    </>
  )
}

/** Shows the number of instances by state, and to approvers also their users. */
function InstancesDetail({ instances }: { instances: ServerInstances }): ReactElement {
  const { users = [] } = instances
  const text = instancesText(instances)
  if (users.length === 0) return <p className="dim">{text}</p>
  return (
    <details className="rejected">
      <summary>{text}</summary>
      <ul>
        {users.map(({ user, tenant, state }) => (
          <li key={`${tenant ?? ''} ${user}`}>
            <Exact text={tenant === undefined ? user : `${tenant} / ${user}`} className="id" /> {state}
          </li>
        ))}
      </ul>
    </details>
  )
}

function ServerDetail({ server }: { server: ServerRow }): ReactElement {
  const { status, reason, rejected, changed, instances } = server
  return (
    <>
      {status !== 'ready' && (
        <p className="section-why">
          <Exact text={toSentence(reason ?? (status === 'starting' ? 'it has not answered yet' : 'no reason given'))} />
        </p>
      )}
      {changed && (
        <p className="section-why">
          <Exact text={`${formatTime(changed.at, Date.now())} · ${toSentence(changed.text)}`} />
        </p>
      )}
      {instances && <InstancesDetail instances={instances} />}
      {rejected.length > 0 && (
        <details className="rejected">
          <summary>{count(rejected.length, 'listed item')} cannot be offered as listed</summary>
          <ul>
            {rejected.map(({ kind, name, reason: why, part }) => (
              <li key={`${kind} ${name}`}>
                {kind} <Exact text={name} className="id" /> {part} <Exact text={toSentence(why)} />
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  )
}

interface ToolRowProps {
  readonly tool: Tool
  /** The group of the section. */
  readonly group: string | undefined
  readonly isLast: boolean
  readonly pin: PinRow | undefined
  /** The caller and the app, for the link. */
  readonly whose: Readonly<Record<string, string>>
  /** Whether a press shows the tool beside the list, and not on a page of its own. */
  readonly isBeside: boolean
  /** The address, on which the row's link depends. */
  readonly address: string
}

/** Shows a tool with its outcome and, unless it is allowed, the reason. */
const ToolRow = memo(({ tool, group, isLast, pin, whose, isBeside }: ToolRowProps): ReactElement => {
  const [deciding] = tool.reasons
  const state = stateOfTool(tool)
  const name = toName(tool.id)
  return (
    <div className={`tool ${tool.visible ? 'seen' : 'hidden-tool'}${isLast ? ' last' : ''}`}>
      <span className="tool-badges">
        <OutcomeBadge outcome={tool.outcome} /> <Depends on={tool.mayStill} />
      </span>
      <div className="tool-main">
        <h3 className="row">
          {isBeside ? (
            <Opener id={tool.id} className="cover">
              <Exact text={name} className="id" />
            </Opener>
          ) : (
            <a href={linkTo('tool', { id: tool.id, ...whose })} data-focus className="cover">
              <Exact text={name} className="id" />
            </a>
          )}
          {tool.title !== undefined && tool.title !== name && <Exact text={tool.title} className="title" />}
          {tool.kind !== 'tool' && <span className="tag">{tool.kind}</span>}
          {state !== undefined && <StateBadge state={state} />}
          <PinNotes pin={pin} />
          {tool.tags.map((tag) => (
            <Exact key={tag} text={tag} className="tag" />
          ))}
        </h3>
        {deciding && !isInHead(deciding, group) && <Why reason={deciding} />}
        <p className="description">
          <Exact text={firstLine(tool.description)} />
        </p>
      </div>
    </div>
  )
})

/** Returns whether the section's head already shows the reason for all its tools. */
function isInHead(reason: Reason, group: string | undefined): boolean {
  return reason.code === 'group_unavailable' && group !== undefined && reason.group === group
}

function Why({ reason }: { reason: Reason }): ReactElement {
  return (
    <p className="why">
      <Exact text={toSentence(reason.text)} />
      <Phrase before=" " text={reason.suggestion} className="suggestion" />
      {reason.since !== undefined && (
        <span className="dim">
          {' '}
          <Since ms={reason.since} />
        </span>
      )}
    </p>
  )
}

/** Returns the first line, cut to 300 characters, because long lines are slow to lay out. */
function firstLine(text: string): string {
  return text.trim().split('\n', 1)[0]?.slice(0, 300) ?? ''
}
