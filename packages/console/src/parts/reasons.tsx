import { Fragment, type ReactElement } from 'react'
import { linkTo } from '../address.ts'
import { count, formatDuration, toSentence } from '../format.ts'
import type { PlacedMayStill, PlacedReason, Reason, WhyInputBody } from '../wire.ts'
import { OutcomeBadge } from './badges.tsx'
import { Exact } from './exact.tsx'
import { Since } from './when.tsx'

type Ways = NonNullable<WhyInputBody['wouldAllow']>

/** Shows the changes that would allow the call. Each way works alone. */
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
                // The text between two marks is code.
                return i % 2 === 1 ? <code key={i}>{exact}</code> : <Fragment key={i}>{exact}</Fragment>
              })}
            </li>
          )
        })}
      </ul>
    </>
  )
}

interface MayStillProps {
  /** Undefined while it is unknown. */
  readonly mayStill: readonly PlacedMayStill[] | undefined
}

/** Shows the reasons that may still oppose a call, each with an example input if known. */
export function MayStill({ mayStill = [] }: MayStillProps): ReactElement | null {
  if (mayStill.length === 0) return null
  return (
    <>
      <p className="dim">A call may still get another answer:</p>
      <ul className="stack reasons" aria-label="What it depends on">
        {mayStill.map(({ example, ...reason }, i) => (
          <li key={i}>
            <OutcomeBadge outcome={reason.outcome} />
            <div>
              <ReasonText reason={reason} lead={MAY_STILL[reason.on]} />
              {example !== undefined && (
                <p className="dim">
                  As with the input <Exact text={JSON.stringify(example)} className="id" />
                </p>
              )}
            </div>
          </li>
        ))}
      </ul>
    </>
  )
}

const MAY_STILL: Readonly<Record<PlacedMayStill['on'], string>> = {
  input: 'depends on the input',
  run: 'depends on the run',
  code: 'depends on code',
  now: 'holds now',
}

/** Shows all reasons, the deciding one first. `none`: the text for an empty list. */
export function Reasons({
  reasons,
  none,
}: {
  reasons: readonly (Reason | PlacedReason)[]
  none: string | undefined
}): ReactElement | null {
  if (reasons.length === 0) return none === undefined ? null : <p className="dim">{none}</p>
  return (
    <ol className="stack reasons">
      {reasons.map((reason, i) => (
        // Reasons have no id, and their order does not change.
        <li key={i}>
          <OutcomeBadge outcome={reason.outcome} />
          <div>
            <ReasonText reason={reason} lead={i === 0 ? 'decides' : undefined} />
          </div>
        </li>
      ))}
    </ol>
  )
}

function ReasonText({ reason, lead }: { reason: Reason | PlacedReason; lead: string | undefined }): ReactElement {
  return (
    <>
      <p>
        <Exact text={toSentence(reason.text)} />{' '}
        {reason.suggestion !== undefined && <Exact text={reason.suggestion} className="suggestion" />}
      </p>
      <p className="dim">
        {lead !== undefined && `${lead} · `}
        {reason.layer} · <code>{reason.code}</code>
        <Rule reason={reason} />
        {'hits' in reason && reason.hits !== undefined && ` · held for ${count(reason.hits, 'call')}`}
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
    </>
  )
}

/** A link to the rule in the policy, with its line if known. */
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
