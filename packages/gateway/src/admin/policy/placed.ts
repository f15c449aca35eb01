import type { Caller, Reason } from '@toolgate/core'
import type { MayStill } from '@toolgate/core/decide'
import type { NeededChange } from '@toolgate/change/internal'
import type { PolicySource } from '../../config/places.ts'
import type { Heart } from '../../heart/heart.ts'
import type { PlacedChange, PlacedMayStill, PlacedReason } from '../../model/rows.ts'
import { mayStillFor, reasonFor, waysFor } from '../http/rule-text.ts'
import type { ClauseHits, CountedClauses } from './clause-hits.ts'

/** The places of rules in the file, and the counts of their matches. */
export interface PlacedRules extends Pick<Heart, 'revisions'> {
  /** Absent if matches are not counted. */
  readonly hits: Pick<ClauseHits, 'read'> | undefined
}

/** Returns the clauses with their counts that a person may see. */
export async function countsIn(
  rules: PlacedRules,
  person: Caller,
  paths?: ReadonlySet<string>,
): Promise<CountedClauses> {
  return (person.tenant === undefined && (await rules.hits?.read(paths))) || { clauses: [] }
}

/** Returns the redacted text. It is redacted line by line, so that line numbers stay the same. */
export function shownText({ text }: PolicySource, { redact }: Pick<Heart, 'redact'>): string {
  return text.split('\n').map(redact.redactText).join('\n')
}

/** Returns whether redaction changes the displayed policy. */
export function isRedacted(heart: Pick<Heart, 'revisions' | 'redact'>): boolean {
  const source = heart.revisions.current.policySource
  return source !== undefined && shownText(source, heart) !== source.text
}

/**
 * Returns a function that prepares a reason for a person: it adds the place of the rule and, for people without a
 * tenant, how often its clause has matched.
 */
export async function placing(
  rules: PlacedRules,
  person: Caller,
  reasons: readonly Reason[],
): Promise<(reason: Reason) => PlacedReason> {
  const placed = await placingAsShown(rules, person, reasons)
  return (given) => placed(reasonFor(person, given))
}

/** Returns the reasons that may still refuse a call, with places and hits, as far as the person may read them. */
export async function mayStillOf(
  found: readonly MayStill[],
  rules: PlacedRules,
  person: Caller,
): Promise<{ readonly mayStill?: readonly PlacedMayStill[] }> {
  if (found.length === 0) return {}
  const placed = await placingAsShown(rules, person, found)
  return {
    mayStill: found.map((given): PlacedMayStill => {
      const may = mayStillFor(person, given)
      return { ...may, ...placed(may) }
    }),
  }
}

async function placingAsShown(
  rules: PlacedRules,
  person: Caller,
  reasons: readonly Reason[],
): Promise<(reason: Reason) => PlacedReason> {
  const { clauses } = await countsIn(rules, person, new Set(reasons.flatMap(({ path }) => path ?? [])))
  const { places } = rules.revisions.current
  const byPath = new Map(clauses.map((clause) => [clause.path, clause]))
  return (reason) => {
    const { path = '' } = reason
    const place = places.get(path)
    const counted = byPath.get(path)
    if (!counted) return place ? { ...reason, place } : reason
    const { hits, lastHitAt, countedSince } = counted
    return { ...reason, ...(place && { place }), hits, ...(lastHitAt !== undefined && { lastHitAt }), countedSince }
  }
}

/** Returns the changes that would allow a call, with the places of rules; nothing if no such change is known. */
export function wouldAllowOf(
  found: readonly (readonly NeededChange[])[],
  rules: PlacedRules,
  person: Caller,
): { readonly wouldAllow?: readonly (readonly PlacedChange[])[] } {
  const { places } = rules.revisions.current
  const placed = (change: NeededChange): PlacedChange => {
    const place = places.get(change.path ?? '')
    return place ? { ...change, place } : change
  }
  const ways = waysFor(person, found)
  return ways.length === 0 ? {} : { wouldAllow: ways.map((way) => way.map(placed)) }
}
