import type { ClauseCoverage } from '@toolgate/core/decide'
import { clauseText } from '@toolgate/core/policy'
import type { ConfigPlaces } from '../../config/places.ts'
import type { Heart } from '../../heart/heart.ts'
import type { Room } from '../../heart/room.ts'
import type { Answer } from '../../heart/route.ts'
import type { ClauseRow, PolicyBody } from '../../model/rows.ts'
import { isApprover } from '../http/callers.ts'
import { parseQuery } from '../http/request.ts'
import { readsRules } from '../http/rule-text.ts'
import { countsIn, type PlacedRules, shownText } from './placed.ts'
import { policy } from './start.ts'

export const room: Room = {
  name: 'policy',
  needs: [policy],
  open({ revisions, redact }, rooms) {
    const answer = policyRoute({ revisions, redact, hits: rooms.ask(policy) })
    return { routes: [{ method: 'GET', path: '/api/policy', by: 'person', answer }] }
  },
}

/**
 * `GET /api/policy`: each clause with its place and its hits; for approvers also the text of the policy. A person of a
 * tenant gets neither, as both concern all tenants.
 */
function policyRoute(rules: PlacedRules & Pick<Heart, 'redact'>): Answer {
  return async ({ query, person }) => {
    parseQuery(query, {})
    const { clauses, isOwn } = await countsIn(rules, person)
    const { number: revision, policySource: written, places } = rules.revisions.current
    const source = isApprover(person) && readsRules(person) ? written : undefined
    const text = source ? shownText(source, rules) : ''
    return {
      revision,
      ...(source && { file: source.file, line: source.line, text, isRedacted: text !== source.text }),
      clauses: clauses.map((clause) => toRow(clause, places)),
      ...(isOwn && { countsAreOwn: isOwn }),
    } satisfies PolicyBody
  }
}

function toRow({ path, ref, matches, ...counts }: ClauseCoverage, places: ConfigPlaces): ClauseRow {
  const place = places.get(path)
  return { clause: clauseText(ref), ref, path, ...(place && { place }), matchesTools: matches, ...counts }
}
