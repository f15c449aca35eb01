import { Fragment, type ReactElement } from 'react'
import { linkTo } from '../address.ts'
import { formatDuration, toSentence } from '../format.ts'
import type { PlacedReason, Reason, WhyInputBody } from '../wire.ts'
import { OutcomeBadge } from './badges.tsx'
import { Exact } from './exact.tsx'
import { Since } from './when.tsx'

type Ways = NonNullable<WhyInputBody['wouldAllow']>

/** What would have to change, each way by itself. */
export function WouldAllow({ ways = [] }: { ways: Ways | undefined }): ReactElement | null {
  if (ways.length === 0) return null
  return (
    <>
      <p className="dim">It would be allowed with one of these:</p>
      <ul>
        {ways.map((way) => {
          const text = way.map((change) => change.text).join(', and ')
          return (
            <li key={text}>
              {text.split('`').map((part, i) => {
                const exact = <Exact text={part} />
                // What stands between two marks is code.
                return i % 2 === 1 ? <code key={i}>{exact}</code> : <Fragment key={i}>{exact}</Fragment>
              })}
            </li>
          )
        })}
      </ul>
    </>
  )
}

/** All reasons, the deciding one first. */
export function Reasons({ reasons }: { reasons: readonly (Reason | PlacedReason)[] }): ReactElement {
  if (reasons.length === 0) return <p className="dim">No rule denies it or asks about it.</p>
  return (
    <ol className="reasons">
      {reasons.map((reason, i) => (
        // Reasons have no id, and their order does not change.
        <li key={i}>
          <OutcomeBadge outcome={reason.outcome} />
          <div>
            <p>
              <Exact text={toSentence(reason.text)} />{' '}
              {reason.suggestion !== undefined && <Exact text={reason.suggestion} className="suggestion" />}
            </p>
            <p className="dim">
              {i === 0 && 'decides · '}
              {reason.layer} · <code>{reason.code}</code>
              <Rule reason={reason} />
              {reason.limit !== undefined && ` · limit ${reason.limit}`}
              {reason.resetMs !== undefined && ` · free again in ${formatDuration(reason.resetMs)}`}
              {reason.since !== undefined && (
                <>
                  {' · '}
                  <Since ms={reason.since} />
                </>
              )}
            </p>
            {reason.message !== undefined && (
              <p className="dim">
                Message to the caller: “<Exact text={reason.message} />”
              </p>
            )}
          </div>
        </li>
      ))}
    </ol>
  )
}

/** Leads to the rule in the policy, with its line where that is known. */
function Rule({ reason: { path = '', ...reason } }: { reason: Reason | PlacedReason }): ReactElement | null {
  if (!/^(policy\[|apps\.)/.test(path)) return null
  const place = 'place' in reason ? reason.place : undefined
  return (
    <>
      {' · '}
      <a href={linkTo('policy', { at: path })}>
        <Exact text={place ? `${place.file}:${place.line}` : path} />
      </a>
    </>
  )
}
