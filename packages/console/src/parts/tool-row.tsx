import { memo, type ReactElement } from 'react'
import { linkTo } from '../address.ts'
import { toSentence } from '../format.ts'
import { stateOfTool } from '../states.ts'
import type { PinRow, Reason, ToolRow as Tool } from '../wire.ts'
import { OutcomeBadge, StateBadge } from './badges.tsx'
import { Exact } from './exact.tsx'
import { PinNotes } from './pin-notes.tsx'
import { Since } from './when.tsx'

export interface ToolRowProps {
  readonly tool: Tool
  /** The group under whose head it stands. */
  readonly group: string | undefined
  readonly isLast: boolean
  readonly pin: PinRow | undefined
  /** What the link keeps: whose view it is. */
  readonly whose: Readonly<Record<string, string>>
}

/** One tool: the word, the name, and where it is not simply allowed, why. */
export const ToolRow = memo(({ tool, group, isLast, pin, whose }: ToolRowProps): ReactElement => {
  const [deciding] = tool.reasons
  const state = stateOfTool(tool)
  const name = tool.id.slice(tool.id.indexOf(':') + 1)
  return (
    <div className={`tool ${tool.visible ? 'seen' : 'hidden-tool'}${isLast ? ' last' : ''}`}>
      <span className="tool-badges">
        <OutcomeBadge outcome={tool.outcome} />
      </span>
      <div className="tool-main">
        <h3>
          <a href={linkTo('tool', { id: tool.id, ...whose })} data-focus className="cover">
            <Exact text={name} className="id" />
          </a>
          {tool.title !== undefined && tool.title !== name && <Exact text={tool.title} className="title" />}
          {state !== undefined && <StateBadge state={state} />}
          <PinNotes pin={pin} />
          {tool.tags.map((tag) => (
            <Exact key={tag} text={tag} className="tag" />
          ))}
        </h3>
        {deciding && !isSaidAbove(deciding, group) && <Why reason={deciding} />}
        <p className="description">
          <Exact text={firstLine(tool.description)} />
        </p>
      </div>
    </div>
  )
})

/** That its group is unavailable, and why, is said once for all of them. */
function isSaidAbove(reason: Reason, group: string | undefined): boolean {
  return reason.code === 'group_unavailable' && group !== undefined && reason.group === group
}

export function Why({ reason }: { reason: Reason }): ReactElement {
  return (
    <p className="why">
      <Exact text={toSentence(reason.text)} />
      {reason.suggestion !== undefined && (
        <>
          {' '}
          <Exact text={reason.suggestion} className="suggestion" />
        </>
      )}
      {reason.since !== undefined && (
        <span className="dim">
          {' '}
          <Since ms={reason.since} />
        </span>
      )}
    </p>
  )
}

/** Long ones are cut here too: nobody reads the rest in one line, and it costs to lay out. */
function firstLine(text: string): string {
  return text.trim().split('\n', 1)[0]?.slice(0, 300) ?? ''
}
