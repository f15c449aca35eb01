import { memo, type ReactElement, useState } from 'react'
import { toSentence } from '../format.ts'
import type { Reason, ToolRow } from '../wire.ts'
import { OutcomeBadge } from './badges.tsx'
import { Exact } from './exact.tsx'
import { Ago } from './when.tsx'

/** One tool: the word, the name, and where it is not simply allowed, why. */
export const ToolItem = memo(({ tool, nowMs }: { tool: ToolRow; nowMs: number }): ReactElement => {
  const [deciding] = tool.reasons
  const [isOpen, setOpen] = useState(false)
  const name = tool.id.slice(tool.id.indexOf(':') + 1)
  return (
    <li className={`tool ${tool.outcome}`}>
      <OutcomeBadge outcome={tool.outcome} />
      <div className="tool-main">
        <h3>
          <Exact text={name} className="id" />
          {tool.title !== undefined && tool.title !== name && <Exact text={tool.title} className="title" />}
          {tool.tags.map((tag) => (
            <Exact key={tag} text={tag} className="tag" />
          ))}
        </h3>
        {deciding && <Why reason={deciding} nowMs={nowMs} />}
        <p className="description">
          <Exact text={firstLine(tool.description)} />
        </p>
        <details onToggle={(event) => setOpen(event.currentTarget.open)}>
          <summary>
            Details<span className="unseen"> of {tool.id}</span>
          </summary>
          {isOpen && <Details tool={tool} />}
        </details>
      </div>
    </li>
  )
}, isSame)

/** Time is told only where a reason has a "since". */
function isSame(before: { tool: ToolRow; nowMs: number }, after: { tool: ToolRow; nowMs: number }): boolean {
  return (
    before.tool === after.tool &&
    (before.nowMs === after.nowMs || !after.tool.reasons.some(({ since }) => since !== undefined))
  )
}

function Why({ reason, nowMs }: { reason: Reason; nowMs: number }): ReactElement {
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
          {' · since '}
          <Ago ms={reason.since} nowMs={nowMs} />
        </span>
      )}
    </p>
  )
}

function Details({ tool }: { tool: ToolRow }): ReactElement {
  return (
    <dl className="facts">
      <dt>Id</dt>
      <dd>
        <Exact text={tool.id} className="id" />
      </dd>
      <dt>Name on the wire</dt>
      <dd>{tool.wireName === '' ? 'none' : <Exact text={tool.wireName} className="id" />}</dd>
      <dt>Listed</dt>
      <dd>{tool.visible ? 'yes' : 'no'}</dd>
      {tool.reasons.length > 0 && (
        <>
          <dt>Reasons, the deciding one first</dt>
          <dd>
            <ol className="reasons">
              {tool.reasons.map((reason) => (
                <li key={`${reason.layer} ${reason.code} ${reason.order} ${reason.text}`}>
                  <OutcomeBadge outcome={reason.outcome} /> <Exact text={toSentence(reason.text)} />{' '}
                  <span className="dim">
                    {reason.layer}, <code>{reason.code}</code>
                  </span>
                  {reason.message !== undefined && (
                    <span className="told">
                      The caller is told: “<Exact text={reason.message} />”
                    </span>
                  )}
                </li>
              ))}
            </ol>
          </dd>
        </>
      )}
      {tool.description !== '' && (
        <>
          <dt>Description</dt>
          <dd className="whole">
            <Exact text={tool.description} />
          </dd>
        </>
      )}
    </dl>
  )
}

function firstLine(text: string): string {
  return text.trim().split('\n', 1)[0] ?? ''
}
