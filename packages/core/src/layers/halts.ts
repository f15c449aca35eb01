import type { Caller } from '../caller.ts'
import { reason } from '../decision/reason.ts'
import { bitsWhere, isEmpty } from '../tools/bits.ts'
import { matchesSelector, type Selector } from '../tools/selector.ts'
import type { Tool } from '../tools/tool.ts'
import type { Toolset } from '../tools/toolset.ts'
import type { Effect } from './effect.ts'

/** What a person stopped, as decisions need it. */
export interface Stopping {
  readonly id: string
  readonly target: Pick<Caller, 'user' | 'session' | 'tenant'>
  /** Absent: every tool. */
  readonly selector: Selector | undefined
  readonly reason: string
  readonly by: string | undefined
  /** Wall-clock milliseconds. */
  readonly at: number
}

/** One halt over one snapshot, and whom it is about. */
export interface HaltEffect {
  readonly halt: Stopping
  readonly effect: Effect
}

export function indexHalts(snapshot: Toolset, halts: readonly Stopping[]): readonly HaltEffect[] {
  return halts.flatMap((halt) => {
    const bits = bitsWhere(snapshot.size, (i) => stopsTool(halt, snapshot.tools[i] as Tool))
    const told = reason('halts', 'halted', textOf(halt), { message: halt.reason, since: halt.at })
    return isEmpty(bits) ? [] : [{ halt, effect: { outcome: 'wait', bits, reason: () => told } }]
  })
}

/** Holds back what a person halted for this caller. */
export function haltEffects(index: readonly HaltEffect[], caller: Caller): Effect[] {
  return index.filter(({ halt }) => stopsCaller(halt, caller)).map(({ effect }) => effect)
}

/** Holds back everything: whether anything is halted is not known. */
export function unknownHalts(snapshot: Toolset): Effect {
  const told = reason('halts', 'halted', 'the state store has not said yet what is halted', {
    message: 'it is not known yet what is halted',
  })
  return { outcome: 'wait', bits: bitsWhere(snapshot.size, () => true), reason: () => told }
}

export function stopsTool({ selector }: Stopping, tool: Tool): boolean {
  return selector === undefined || matchesSelector(selector, tool, 'possible')
}

/** Whom a field does not name is whoever it may be: a user is halted in every tenant unless one is named too. */
export function stopsCaller({ target }: Stopping, { user, session, tenant }: Caller): boolean {
  return (
    (target.user === undefined || target.user === user) &&
    (target.session === undefined || target.session === session) &&
    (target.tenant === undefined || target.tenant === tenant)
  )
}

function textOf({ id, by, reason: why }: Stopping): string {
  return `halt ${id}${by === undefined ? '' : ` by ${by}`}: ${why}`
}
