import type { Caller } from '../ports/caller.ts'
import { includesSelector } from '../tools/selector-includes.ts'
import { coversApprover } from './approver.ts'
import type { ParsedCondition } from './condition.ts'
import { fails, isAlways } from './constant.ts'
import type { ParsedClause, ParsedPolicy } from './parse.ts'
import { partsOf } from './shadow.ts'

/** A clause that changes no decision. */
export interface IdleClause {
  readonly code: 'clause_covered' | 'clause_never'
  /** The path of the clause, such as `policy[0].deny[1]`. */
  readonly path: string
  readonly text: string
  /** The path of the clause that covers it. */
  readonly by?: string
}

/**
 * Finds clauses that can never hold, and clauses that another clause covers: without them each decision is the same.
 * Reports only certain cases. Shadows neither cover nor are covered.
 *
 * `callers`: all callers that exist, if they are known. A condition about a role, user or tenant that none of them has is
 * then certain.
 */
export function findIdleClauses(policies: readonly ParsedPolicy[], callers?: readonly Caller[]): readonly IdleClause[] {
  const enforced = policies.map((policy) => partsOf(policy).enforced).flatMap(clausesOf)
  return enforced.flatMap((clause, at): IdleClause[] => {
    const never = neverHolds(clause, callers)
    if (never !== undefined)
      return [{ code: 'clause_never', path: clause.path, text: `"${clause.label}" never holds: ${never}` }]
    // Of two equal clauses, the later is reported.
    const by = enforced.find(
      (other, i) => other !== clause && covers(other, clause) && (i < at || !covers(clause, other)),
    )
    if (!by) return []
    const how = clause.kind === 'allow' && by.kind === 'deny' ? 'allows nothing' : 'changes nothing'
    const text = `"${clause.label}" ${how}: ${by.path} ("${by.label}") ${by.kind === 'deny' ? 'denies' : 'covers'} all of it`
    return [{ code: 'clause_covered', path: clause.path, text, by: by.path }]
  })
}

/** A clause with its policy, because an allow list belongs to one policy. */
interface OwnedClause extends ParsedClause {
  readonly of: ParsedPolicy
}

function clausesOf(policy: ParsedPolicy): readonly OwnedClause[] {
  const { deny, ask, allow = [] } = policy
  return [...deny, ...ask, ...allow].map((clause) => ({ ...clause, of: policy }))
}

function covers(a: OwnedClause, b: OwnedClause): boolean {
  if (!mayCover(a, b)) return false
  return b.selectors.every((narrow) => a.selectors.some((wide) => includesSelector(wide, narrow)))
}

/** Returns whether the kinds of two clauses about the same items let one cover the other. */
function mayCover(a: OwnedClause, b: OwnedClause): boolean {
  switch (`${a.kind} ${b.kind}` as const) {
    case 'deny deny':
      return isHidden(a) ? holdsWith(a, b) : holdsWith(a, b) && a.message === b.message && failsAs(a, b)
    case 'deny ask':
      return holdsWith(a, b) && (isHidden(a) || failsAs(a, b))
    case 'ask ask':
      return (
        holdsWith(a, b) &&
        failsAs(a, b) &&
        (b.run === undefined || isSame(a, b)) &&
        (b.message === undefined || a.message === b.message) &&
        coversApprover(a.approver, b.approver)
      )
    // A failing condition does not allow.
    case 'allow allow':
      return a.of === b.of && hasFewer(a, b)
    case 'deny allow':
      return !isAtCall(a) && hasFewer(a, b)
    default:
      return false
  }
}

const CONDITIONS = ['when', 'unless', 'input'] as const

function isSame(a: ParsedClause, b: ParsedClause): boolean {
  return CONDITIONS.every((field) => isEqual(a[field], b[field]))
}

/**
 * Returns whether each condition of one clause is absent or equal to that of the other, so that it holds wherever the other
 * does.
 */
function hasFewer(a: ParsedClause, b: ParsedClause): boolean {
  return CONDITIONS.every((field) => a[field] === undefined || isEqual(a[field], b[field]))
}

/** Returns whether one clause holds or fails wherever the other holds or fails. Conditions are evaluated in order. */
function holdsWith(a: ParsedClause, b: ParsedClause): boolean {
  if (isSame(a, b)) return true
  if (isAtCall(a)) return false
  return hasFewer(a, b) && (a.unless === undefined || isEqual(a.when, b.when))
}

/** Returns whether the second clause fails only where the first fails. */
function failsAs(a: ParsedClause, b: ParsedClause): boolean {
  return isSame(a, b) || CONDITIONS.every((field) => !fails(b[field]))
}

/** Functions of the host have no text to compare. */
function isEqual(a: ParsedCondition | undefined, b: ParsedCondition | undefined): boolean {
  if (a === undefined || b === undefined) return a === b
  return a.tree !== undefined && b.tree !== undefined && a.text === b.text
}

function isAtCall({ input, run }: ParsedClause): boolean {
  return input !== undefined || run !== undefined
}

/** Returns whether a denied item reads like an unknown one, whatever else denies it. */
function isHidden(clause: ParsedClause): boolean {
  return clause.message === undefined && !isAtCall(clause)
}

/** Returns why a clause never holds and never fails, if that is certain. */
function neverHolds({ kind, when, unless, input }: ParsedClause, callers: readonly Caller[] | undefined) {
  const isNever = (condition: ParsedCondition | undefined, wanted: boolean) =>
    condition === undefined ? undefined : isAlways(condition, wanted, callers)
  const says = (field: string, wanted: boolean, of: 'everybody' | 'callers') =>
    `\`${field}\` is ${wanted} ${of === 'everybody' ? 'for everybody' : 'for every caller of the configuration'}`
  const ofWhen = isNever(when, false)
  if (ofWhen) return says('when', false, ofWhen)
  const ofUnless = kind === 'allow' || !fails(when) ? isNever(unless, true) : undefined
  if (ofUnless) return says('unless', true, ofUnless)
  // A list shows items that an `allow` may allow once the input is known.
  const ofInput = kind === 'allow' || fails(when) || fails(unless) ? undefined : isNever(input, false)
  return ofInput && says('input', false, ofInput)
}
