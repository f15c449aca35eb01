import type { ReactElement } from 'react'
import { count, formatNumber } from '../format.ts'
import type { Look } from '../states.ts'
import type { CompareBody } from '../wire.ts'
import { Badge } from './badges.tsx'
import { Exact } from './exact.tsx'
import { writeDigits } from '../digits.ts'

const LOOKS: Readonly<Record<CompareBody['grantsNoMore'], Look>> = { yes: 'good', no: 'bad', unknown: 'ask' }
const MAX_ROWS = 20

interface GrantsNoMoreProps {
  /** The answer. Absent until the policies are compared. */
  readonly body: CompareBody | undefined
  readonly problem: string | undefined
}

/** Shows whether the draft grants no more than the policy in force, with a counterexample, or why this is unknown. */
export function GrantsNoMore({ body, problem }: GrantsNoMoreProps): ReactElement {
  return (
    <section className="grants" aria-label="Grants no more than today" aria-busy={!body && problem === undefined}>
      <h2>Grants no more than today</h2>
      {problem !== undefined && (
        <p className="problem">
          Not compared: <Exact text={problem} />
        </p>
      )}
      {!body && problem === undefined && <p className="dim">Comparing…</p>}
      {body && <Answer body={body} />}
    </section>
  )
}

function Answer({ body }: { body: CompareBody }): ReactElement {
  const { grantsNoMore, counterexamples, notCompared, sections } = body
  return (
    <>
      <p>
        <Badge word={grantsNoMore} look={LOOKS[grantsNoMore]} /> {WORDS[grantsNoMore]}
      </p>
      <ul>
        {counterexamples.slice(0, MAX_ROWS).map((example, i) => (
          <li key={i}>
            <Counterexample {...example} />
          </li>
        ))}
        {counterexamples.length > MAX_ROWS && <li className="dim">and {counterexamples.length - MAX_ROWS} more</li>}
        {notCompared.slice(0, MAX_ROWS).map(({ caller, tools, why }, i) => (
          <li key={`open-${i}`}>
            <Exact text={caller} className="strong" />: unknown
            {tools.length > 0 && (
              <>
                {' '}
                for {count(tools.length, 'tool')} (<Exact text={tools.slice(0, MAX_ROWS).join(', ')} className="id" />
                {tools.length > MAX_ROWS && ` and ${formatNumber(tools.length - MAX_ROWS)} more`})
              </>
            )}
            , because <Exact text={why} />.
          </li>
        ))}
        {notCompared.length > MAX_ROWS && <li className="dim">and {count(notCompared.length - MAX_ROWS, 'caller')}</li>}
        {sections.length > 0 && (
          <li>
            These sections differ and are not proven to grant no more: <Exact text={sections.join(', ')} />.
          </li>
        )}
      </ul>
    </>
  )
}

const WORDS: Readonly<Record<CompareBody['grantsNoMore'], string>> = {
  yes: 'Every possible call of every possible caller gets the same answer or a stricter one.',
  no: 'Some call gets more than it does today.',
  unknown: 'No counterexample was found, and no proof.',
}

function Counterexample({
  caller,
  tool,
  input,
  before,
  after,
  weakerApproval,
}: CompareBody['counterexamples'][number]): ReactElement {
  return (
    <>
      <Exact text={caller} className="strong" />: a call of <Exact text={tool} className="id" />
      {input !== undefined && (
        <>
          {' '}
          with{' '}
          <code>
            <Exact text={writeDigits(input)} />
          </code>
        </>
      )}{' '}
      would be <span className="strong">{after}</span>
      {weakerApproval ? ', and somebody else may approve it.' : ` and is ${before} today.`}
    </>
  )
}
