import type { CallOutcome, GroupBadge, GroupRow, OutcomeWord, ToolRow, PinRow } from './wire.ts'
import { toVisible } from './exact-text.ts'

/** The state of a group or a tool, for its badge. */
export type State = GroupBadge | 'suspended' | 'halted' | 'quarantined'

/** Returns the badge of a group, derived from its other fields for a gateway that sends none. */
export function stateOfGroup(group: Omit<GroupRow, 'tools'>): State {
  if (group.badge !== undefined) return group.badge
  if (group.visibility === 'always' && group.available) return 'always'
  return group.available ? 'available' : 'unavailable'
}

const STATES: ReadonlyMap<string, State> = new Map([
  ['halted', 'halted'],
  ['tool_quarantined', 'quarantined'],
  ['tool_suspended', 'suspended'],
  ['group_unavailable', 'unavailable'],
  ['group_locked', 'locked'],
])

/**
 * Returns the state that holds a tool back in addition to the policy, or `undefined`. If there are several, it returns
 * the most serious: a halt is a person's action, and a lock is normal.
 */
export function stateOfTool({ reasons }: Pick<ToolRow, 'reasons'>): State | undefined {
  for (const [code, state] of STATES) if (reasons.some((reason) => reason.code === code)) return state
  return undefined
}

/** Returns whether a state holds tools back. */
export function isHeldBack(state: State): boolean {
  return state !== 'always' && state !== 'available'
}

/** The look of a badge. Each of the five has its own colour and shape. */
export type Look = 'good' | 'ask' | 'wait' | 'bad' | 'plain'

export const OUTCOME_LOOKS: Readonly<Record<OutcomeWord, Look>> = {
  allow: 'good',
  ask: 'ask',
  wait: 'wait',
  deny: 'bad',
}

export const CALL_LOOKS: Readonly<Record<CallOutcome, Look>> = {
  done: 'good',
  failed: 'bad',
  refused: 'bad',
  limited: 'wait',
  waiting: 'ask',
  input_required: 'ask',
  abandoned: 'bad',
  running: 'plain',
}

export const STATE_LOOKS: Readonly<Record<State, Look>> = {
  always: 'plain',
  available: 'good',
  unavailable: 'wait',
  unknown: 'plain',
  locked: 'wait',
  suspended: 'ask',
  halted: 'bad',
  quarantined: 'bad',
}

/** A badge about a tool's definition, beside its name. */
type PinNote = 'changed' | 'differs' | 'flagged'

/**
 * Returns the notes of a definition. `changed`: it changed since it was pinned. `differs`: only some users have it, and
 * it differs from the accepted ones. `flagged`: it has hidden content. Findings that a person has accepted are left
 * out. The decision's reasons show whether the tool is suspended or quarantined.
 */
export function notesOf({ status, findings, by }: PinRow): readonly PinNote[] {
  return [
    ...(status === 'changed' || status === 'differs' ? [status] : []),
    ...(findings.length > 0 && (by === undefined || status !== 'pinned') ? ['flagged' as const] : []),
  ]
}

/** Returns the pin of a tool. If users have their own lists, it is the pin of the displayed definition. */
export function pinOf(pins: readonly PinRow[], { id, hash }: Pick<ToolRow, 'id' | 'hash'>): PinRow | undefined {
  return pins.find((pin) => pin.tool === id && (hash === undefined || pin.hash === hash))
}

/** Returns the details of a note, with invisible characters marked. */
export function wordsOfNote(note: PinNote, { diff, findings }: PinRow): string {
  const { changes = [], more = 0 } = diff ?? {}
  const changed = changes.map(({ pointer, text }) => `${pointer || '(whole definition)'}: ${text}`)
  const words =
    note === 'flagged' ? findings.map(({ text }) => text) : [...changed, ...(more > 0 ? [`${more} more`] : [])]
  return toVisible(words.join('; '))
}
