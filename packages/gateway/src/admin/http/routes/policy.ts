import type { Caller, Reason } from '@toolgate/core'
import type { ClauseCoverage, MayStill } from '@toolgate/core/decide'
import { clauseText } from '@toolgate/core/policy'
import type { NeededChange } from '@toolgate/change/internal'
import { redactor } from '@toolgate/values/redact'
import { isApprover } from '../callers.ts'
import type { ConfigPlaces, PolicySource } from '../../../config/places.ts'
import type { CountedClauses } from '../../overview/clause-hits.ts'
import type { ApiDeps } from '../deps.ts'
import { parseQuery, type Route } from '../request.ts'
import { mayStillFor, readsRules, reasonFor, waysFor } from '../rule-text.ts'
import type { ClauseRow, PlacedChange, PlacedMayStill, PlacedReason, PolicyBody } from '../../../model/rows.ts'

/**
 * `GET /api/policy`: each clause with its place and its hits; for approvers, the policy as it is written. A person of a tenant
 * gets neither: both are of all tenants.
 */
export function policyRoute(deps: ApiDeps): Route {
  return async ({ query, person }) => {
    parseQuery(query, {})
    const { clauses, isOwn } = await countsIn(deps, person)
    const { revision, source: written, places } = deps.policy?.() ?? { revision: 0 }
    const source = isApprover(person) && readsRules(person) ? written : undefined
    const text = source ? shownText(source, deps) : ''
    return {
      revision,
      ...(source && { ...source, text, isRedacted: text !== source.text }),
      clauses: clauses.map((clause) => toRow(clause, places)),
      ...(isOwn && { countsAreOwn: isOwn }),
    } satisfies PolicyBody
  }
}

async function countsIn(deps: ApiDeps, person: Caller, paths?: ReadonlySet<string>): Promise<CountedClauses> {
  return (person.tenant === undefined && (await deps.clauses?.(paths))) || { clauses: [] }
}

/** Line by line, so that the lines stay where they are. */
function shownText({ text }: PolicySource, { redact = redactor }: ApiDeps): string {
  return text.split('\n').map(redact.redactText).join('\n')
}

/** Returns whether the policy as it is shown lacks something of the file. */
export function isRedacted(deps: ApiDeps): boolean {
  const source = deps.policy?.().source
  return source !== undefined && shownText(source, deps) !== source.text
}

function toRow({ path, ref, matches, ...counts }: ClauseCoverage, places: ConfigPlaces | undefined): ClauseRow {
  const place = places?.get(path)
  return { clause: clauseText(ref), ref, path, ...(place && { place }), matchesTools: matches, ...counts }
}

/**
 * Returns a function that shows a person a reason, and adds where its rule is written and, for people without a
 * tenant, how often its clause has held.
 */
export async function placing(
  deps: ApiDeps,
  person: Caller,
  reasons: readonly Reason[],
): Promise<(reason: Reason) => PlacedReason> {
  const placed = await placingAsShown(deps, person, reasons)
  return (given) => placed(reasonFor(person, given))
}

/** Returns the reasons that may still be against a call, with places and hits, as far as a person may read them. */
export async function mayStillOf(
  found: readonly MayStill[],
  deps: ApiDeps,
  person: Caller,
): Promise<{ readonly mayStill?: readonly PlacedMayStill[] }> {
  if (found.length === 0) return {}
  const placed = await placingAsShown(deps, person, found)
  return {
    mayStill: found.map((given): PlacedMayStill => {
      const may = mayStillFor(person, given)
      return { ...may, ...placed(may) }
    }),
  }
}

async function placingAsShown(
  deps: ApiDeps,
  person: Caller,
  reasons: readonly Reason[],
): Promise<(reason: Reason) => PlacedReason> {
  const { clauses } = await countsIn(deps, person, new Set(reasons.flatMap(({ path }) => path ?? [])))
  const { places } = deps.policy?.() ?? {}
  const byPath = new Map(clauses.map((clause) => [clause.path, clause]))
  return (reason) => {
    const { path = '' } = reason
    const place = places?.get(path)
    const counted = byPath.get(path)
    if (!counted) return place ? { ...reason, place } : reason
    const { hits, lastHitAt, countedSince } = counted
    return { ...reason, ...(place && { place }), hits, ...(lastHitAt !== undefined && { lastHitAt }), countedSince }
  }
}

/** Returns what would have to change, with the places of rules; nothing where no way is known. */
export function wouldAllowOf(
  found: readonly (readonly NeededChange[])[],
  deps: ApiDeps,
  person: Caller,
): { readonly wouldAllow?: readonly (readonly PlacedChange[])[] } {
  const { places } = deps.policy?.() ?? {}
  const placed = (change: NeededChange): PlacedChange => {
    const place = places?.get(change.path ?? '')
    return place ? { ...change, place } : change
  }
  const ways = waysFor(person, found)
  return ways.length === 0 ? {} : { wouldAllow: ways.map((way) => way.map(placed)) }
}
