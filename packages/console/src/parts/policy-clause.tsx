import type { ReactElement } from 'react'
import { wordsOfHits } from '../policy.ts'
import type { ClauseRow } from '../wire.ts'
import { Badge } from './badges.tsx'
import { Exact } from './exact.tsx'
import { Ago, Since } from './when.tsx'

/** Shows the matches of a clause since counting began. */
export function ClauseNote({ clause }: { clause: ClauseRow }): ReactElement {
  const { clause: name, hits, lastHitAt, countedSince, matchesTools, shadow } = clause
  return (
    <li className={matchesTools === 0 ? 'row clause-note unmatched' : 'row clause-note'}>
      <Exact text={name} className="id" />
      {shadow && <Badge word="shadow" look="ask" />}
      {matchesTools === 0 && <Badge word="matches nothing" look="bad" />}
      <span className={hits === 0 ? 'dim' : 'strong'}>{wordsOfHits(clause)}</span>
      <span className="dim">
        {lastHitAt !== undefined && (
          <>
            last <Ago ms={lastHitAt} />
            {', '}
          </>
        )}
        counted <Since ms={countedSince} />
      </span>
    </li>
  )
}
