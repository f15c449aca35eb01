import type { GroupBadge, GroupRow, OutcomeWord, ToolRow } from './wire.ts'

/** What a group or a tool is like now, as its badge says. */
export type State = GroupBadge | 'suspended' | 'halted' | 'quarantined'

/** The badge of a group; a gateway that gives none is understood by what it does give. */
export function stateOfGroup(group: GroupRow): State {
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
 * What holds a tool back besides the policy: `undefined` where nothing does. The gravest of several, as a halt is
 * what somebody did, and a lock is how things are meant to be.
 */
export function stateOfTool({ reasons }: Pick<ToolRow, 'reasons'>): State | undefined {
  for (const [code, state] of STATES) if (reasons.some((reason) => reason.code === code)) return state
  return undefined
}

/** Whether a person is needed before it works again. */
export function isHeldBack(state: State): boolean {
  return state !== 'always' && state !== 'available'
}

/** What a word or a state looks like. Five looks carry all badges, each with a shape of its own. */
export type Look = 'good' | 'ask' | 'wait' | 'bad' | 'plain'

export const OUTCOME_LOOKS: Readonly<Record<OutcomeWord, Look>> = {
  allow: 'good',
  ask: 'ask',
  wait: 'wait',
  deny: 'bad',
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
