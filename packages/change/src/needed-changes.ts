import { type Decided, hasBit, type PolicyIndex } from '@toolgate/core/decide'
import type { Caller, Reason, ReasonCode } from '@toolgate/core'
import {
  clauseText,
  joined,
  type ParsedClause,
  type ParsedCondition,
  type Wish,
  wishesFor,
  type WishList,
} from '@toolgate/core/policy'
import type { NeededChange } from './needed-change.ts'

type ChangeSet = readonly NeededChange[]

/** No change: changes for another reason may also remove this one. */
const NOTHING: readonly ChangeSet[] = [[]]

/** Returns alternative ways to remove one reason. None has been tried. */
export function changesAgainst(reason: Reason, decided: Decided, withInput: boolean): readonly ChangeSet[] {
  const { bounds, tool } = decided
  const state = STATES[reason.code]
  if (state)
    return [
      [
        {
          on: 'state',
          does: 'release',
          code: reason.code,
          state: stateOf(reason),
          text: state(reason, tool?.id ?? ''),
        },
      ],
    ]
  const scopes = reason.scopes ?? []
  if (scopes.length > 0) return [scopes.map((value) => toChange({ on: 'caller', does: 'add', field: 'scopes', value }))]
  const index = decided.today.policies.find(({ policy }) => reason.path?.startsWith(`${policy.path}.`))
  const ways = index ? changesOfPolicy(reason, index, decided, withInput) : []
  const useful = ways.map((way) => way.filter((change) => !isSo(change, bounds.caller)))
  return useful.length === 0 ? NOTHING : useful
}

function changesOfPolicy(
  reason: Reason,
  index: PolicyIndex,
  { now, tool }: Decided,
  withInput: boolean,
): readonly ChangeSet[] {
  const { name, path } = index.policy
  const clause = reason.clause && index.policy.deny.find((one) => one.path === reason.path)
  if (clause && reason.clause) {
    const text = `\`${clauseText(reason.clause)}\` removed, or narrowed`
    return [...endings(clause, withInput), [{ on: 'policy', does: 'remove', path: clause.path, text }]]
  }
  if (reason.code === 'policy_tag_missing') {
    const untagged = index.untagged.find(({ tag }) => reason.text.endsWith(` ${tag}`))
    if (!untagged) return []
    const text = `the tag \`${untagged.tag}\` no longer required by policy "${name}"`
    return [[{ on: 'policy', does: 'untag', path: reason.path ?? path, value: untagged.tag, text }]]
  }
  if (!reason.path?.endsWith('.allow')) return []
  const id = tool?.id ?? ''
  const written = index.policy.allow ? `\`${id}\`` : `\`*\` and \`${id}\``
  const allow: NeededChange = {
    on: 'policy',
    does: 'allow',
    path: reason.path,
    text: `an \`allow\` for ${written} in policy "${name}"`,
  }
  const near = (index.allow ?? []).filter(({ bits }) => hasBit(bits, now))
  return [...near.flatMap((one) => beginnings(one.clause, withInput)), [allow]]
}

/** Returns the ways to make a clause hold. */
function beginnings({ when, unless, input }: ParsedClause, withInput: boolean): readonly ChangeSet[] {
  const parts = [wishesOf(when, true), wishesOf(unless, false), ...(withInput ? [wishesOf(input, true)] : [])]
  return joined(parts).map((wishes) => wishes.map(toChange))
}

/** Returns the ways to make a clause not hold. Changing one of its conditions is enough. */
function endings({ when, unless, input }: ParsedClause, withInput: boolean): readonly ChangeSet[] {
  const parts = [wishesOf(when, false), wishesOf(unless, true), ...(withInput ? [wishesOf(input, false)] : [])]
  return parts
    .flat()
    .filter((wishes) => wishes.length > 0)
    .map((wishes) => wishes.map(toChange))
}

function wishesOf(condition: ParsedCondition | undefined, wanted: boolean): readonly WishList[] {
  return condition?.tree ? wishesFor(condition.tree, wanted) : NO_WISH
}

const NO_WISH: readonly WishList[] = [[]]

function toChange({ on, does, field, value }: Wish): NeededChange {
  const [at, what] = [on === 'input' ? `input.${field}` : field, typeof value === 'string' ? value : `${value}`]
  const link = { add: 'in', remove: 'not in', set: 'as' }[does]
  return { on, does, field, value, text: `\`${what}\` ${link} \`${at}\`` }
}

/** Returns the name of the state that causes a reason. Several groups may have the same reason. */
export function stateOf({ layer, code, group = '', text }: Reason): string {
  return [layer, code, group, text].join(' ')
}

/** Returns whether a change has no effect. */
function isSo({ on, does, field, value }: NeededChange, caller: Caller): boolean {
  if (on !== 'caller' || (field !== 'roles' && field !== 'scopes')) return false
  const has = (caller[field] ?? []).some((one) => one === value)
  return does === 'add' ? has : does === 'remove' && !has
}

type StateText = (reason: Reason, id: string) => string

/** The ways to end each state that holds an item back. */
const STATES: Partial<Record<ReasonCode, StateText>> = {
  group_unavailable: ({ group, text }) =>
    group === undefined ? `this to end: ${text}` : `the group \`${group}\` available`,
  group_locked: ({ group, text }) =>
    group === undefined ? `this to end: ${text}` : `the group \`${group}\` opened in the session`,
  step_inactive: (_, id) => `\`${id}\` among the active tools of the step`,
  visibility_hidden: (_, id) => `\`${id}\` in the visibility of the run`,
  not_connected: (_, id) => `the caller's account connected to the server of \`${id}\``,
  switched_off: (_, id) => `\`${id}\` switched on again in the caller's preferences`,
  tool_suspended: (_, id) => `the changed definition of \`${id}\` accepted`,
  tool_quarantined: (_, id) => `\`${id}\` accepted out of quarantine`,
  halted: ({ text }) => `a release of ${text}`,
}
