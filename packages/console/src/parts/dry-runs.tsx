import type { ReactElement } from 'react'
import type { WhyInputBody } from '../wire.ts'
import { OutcomeBadge } from './badges.tsx'
import { Exact } from './exact.tsx'
import { MayStill, Reasons, WouldAllow } from './reasons.tsx'
import { writeDigits } from '../digits.ts'

export interface DryRunView {
  readonly input: unknown
  readonly body: WhyInputBody
  /** The history that was entered for the dry run, if any. */
  readonly history?: string
}

/** Shows the answer to the latest dry run, and below it earlier answers, to compare inputs. */
export function DryRuns({ runs }: { runs: readonly DryRunView[] }): ReactElement {
  const [latest, ...earlier] = runs
  return (
    <>
      <div role="status">
        {latest && (
          <div className="stack loose dry-run">
            <p className="row">
              <OutcomeBadge outcome={latest.body.outcome} />
              <Exact text={`${WORDS[latest.body.outcome]} Nothing was run.${afterOf(latest)}`} />
            </p>
            <Reasons reasons={latest.body.reasons} none={latest.body.mayStill ? undefined : NO_RULE} />
            <MayStill mayStill={latest.body.mayStill} />
            <WouldAllow ways={latest.body.wouldAllow} />
            <SaidYes body={latest.body} />
            {latest.body.text !== undefined && (
              <p className="dim">
                The agent would read: “<Exact text={latest.body.text} />”
              </p>
            )}
          </div>
        )}
      </div>
      {earlier.length > 0 && latest && (
        <ul className="recent earlier-runs" aria-label="Earlier inputs">
          {earlier.map(({ input, body, history }, i) => (
            <li key={runs.length - i}>
              <OutcomeBadge outcome={body.outcome} />
              <code>
                <Exact text={writeDigits(input)} />
              </code>
              <span className="dim">
                <Exact text={body.reasons[0]?.text ?? NO_RULE} />
                {history !== undefined && ' After what was stated.'}
              </span>
            </li>
          ))}
        </ul>
      )}
    </>
  )
}

const NO_RULE = 'No rule denies this input or asks about it.'

const WORDS: Readonly<Record<WhyInputBody['outcome'], string>> = {
  allow: 'A call with this input would run.',
  ask: 'A person would be asked first.',
  wait: 'It would be refused for now.',
  deny: 'It would be refused.',
}

function afterOf({ history }: DryRunView): string {
  return history === undefined ? '' : ' It was judged after what you have stated.'
}

/** Shows the layers that allow the call. */
function SaidYes({ body: { reasons, answers } }: Pick<DryRunView, 'body'>): ReactElement | null {
  const yes = answers.filter(({ outcome }) => outcome === 'allow').map(({ layer }) => layer)
  return reasons.length > 0 && yes.length > 0 ? <p className="dim">Layers that allow it: {yes.join(', ')}.</p> : null
}
