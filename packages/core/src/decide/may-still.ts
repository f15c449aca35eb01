import type { ParsedClause } from '../policy/parse.ts'
import type { Caller } from '../ports/caller.ts'
import { addBits, type Bits, hasBit, invertBits, isEmpty, noBits } from '../tools/bits.ts'
import type { Decided } from './decide.ts'
import { compareStrictness, type MayStill, mayGoOn, type Reason, reason, sortReasons } from './decision.ts'
import { placesOf } from './layers/at-call.ts'
import { type ClauseIndex, clauseReason, isAtCall, nameOf, type PolicyIndex, placeOf } from './layers/clauses.ts'
import { evaluateClause } from './layers/policy.ts'

/** A clause that holds only for some calls, and the tools for which it may hold. */
interface PendingClause {
  readonly bits: Bits
  readonly clause: ParsedClause
  readonly may: MayStill
}

/**
 * Returns the rules about the input and the run that may still refuse a call of a listed item, given what is known of the
 * caller and the item. Empty for an unlisted item.
 */
export function rulesThatMayStill(decided: Decided): readonly MayStill[] {
  const { bounds, today, atFirst, now, tool, outcome } = decided
  if (!tool || !mayGoOn(outcome)) return NONE
  const found: MayStill[] = []
  addPending(found, decided, bounds.policies, atFirst)
  if (today.policies !== bounds.policies) addPending(found, decided, today.policies, now)
  return found.length < 2 ? found : (sortReasons(found) as readonly MayStill[])
}

function addPending(
  found: MayStill[],
  { bounds, tool, outcome }: Decided,
  policies: readonly PolicyIndex[],
  at: number,
) {
  const known = found.length
  for (const index of policies) {
    const pending = pendingOf(index, bounds.caller)
    if (pending.length === 0) continue
    const places = placesOf(index, at)
    for (const { bits, clause, may } of pending) {
      if (!places.some((place) => hasBit(bits, place))) continue
      // The input of a resource is its URI, so its list entry was already decided with it.
      if (tool?.kind === 'resource' && !clause.run) continue
      if (compareStrictness(may.outcome, outcome) >= 0) continue
      if (known === 0 || !found.some(({ path, text }) => path === may.path && text === may.text)) found.push(may)
    }
  }
}

const NONE: readonly MayStill[] = Object.freeze([])
const known = new WeakMap<PolicyIndex, WeakMap<Caller, readonly PendingClause[]>>()

/** Computed once for each caller and snapshot, because lists need it for every tool. */
function pendingOf(index: PolicyIndex, caller: Caller): readonly PendingClause[] {
  if (isEmpty(index.atCall)) return NO_PENDING
  let byCaller = known.get(index)
  if (!byCaller) known.set(index, (byCaller = new WeakMap()))
  let found = byCaller.get(caller)
  if (!found) byCaller.set(caller, (found = [...restricting(index, caller), ...allowing(index, caller)]))
  return found
}

const NO_PENDING: readonly PendingClause[] = []

/** The clauses that deny or ask if their conditions about the call hold, and deny if these fail. */
function restricting(index: PolicyIndex, caller: Caller): readonly PendingClause[] {
  return [...index.deny, ...index.ask].filter(isAtCall).flatMap((indexed) => {
    const { clause } = indexed
    const { holds, errors } = evaluateClause(indexed, index, caller)
    const bits = holds.slice()
    addBits(bits, errors)
    const why = clauseReason(index, clause, clause.kind === 'deny' ? 'input_denied' : 'policy_ask')
    return toPending(bits, clause, why)
  })
}

/** The clauses of an allow list that would have to hold for the list to allow, and that depend on the call. */
function allowing(index: PolicyIndex, caller: Caller): readonly PendingClause[] {
  const judged = (index.allow ?? []).map((indexed) => ({ indexed, ...evaluateClause(indexed, index, caller) }))
  const { size } = index.snapshot
  const sure = noBits(size)
  for (const { indexed, holds } of judged) if (!isAtCall(indexed)) addBits(sure, holds)
  return judged.flatMap(({ indexed, holds }) => {
    if (!isAtCall(indexed)) return []
    const bits = invertBits(holds, size)
    addBits(bits, sure)
    return toPending(invertBits(bits, size), indexed.clause, allowReason(index, indexed))
  })
}

function allowReason(index: PolicyIndex, { clause }: ClauseIndex): Reason {
  const conditions = [clause.when, clause.unless, clause.input].flatMap((condition, i) =>
    condition ? [`${['when', 'unless', 'where'][i]} ${condition.text}`] : [],
  )
  const text = `${nameOf(index)} denies what no allow rule allows, and allows ${clause.label} ${conditions.join(', ')}`
  return reason('input', 'input_denied', text, placeOf(index, clause))
}

function toPending(bits: Bits, clause: ParsedClause, why: Reason): readonly PendingClause[] {
  return isEmpty(bits) ? [] : [{ bits, clause, may: { ...why, layer: 'input', on: clause.run ? 'run' : 'input' } }]
}
