import type { Caller } from '../../ports/caller.ts'
import type { MissingConnection } from '../../ports/ports.ts'
import { bitsWhere, isEmpty, type Bits, noBits, setBit } from '../../tools/bits.ts'
import { matchesSelector, type Selector, type GroupSelectors } from '../../tools/selector.ts'
import type { Tool } from '../../tools/tool.ts'
import type { Toolset } from '../../tools/toolset.ts'
import { reason, type Reason } from '../decision.ts'
import type { Effect } from '../evaluation.ts'

/** A halt, in the form that decisions need. */
export interface Stopping {
  readonly id: string
  readonly target: Pick<Caller, 'user' | 'session' | 'tenant'>
  /** Absent: the halt stops every tool. */
  readonly selector: Selector | undefined
  readonly reason: string
  readonly by: string | undefined
  /** Wall-clock milliseconds. */
  readonly at: number
}

/** One halt over one snapshot, and the callers that it stops. */
export interface HaltEffect {
  readonly halt: Stopping
  readonly effect: Effect
}

export function indexHalts(snapshot: Toolset, halts: readonly Stopping[]): readonly HaltEffect[] {
  return halts.flatMap((halt) => {
    const bits = bitsWhere(snapshot.size, (i) => stopsTool(halt, snapshot.tools[i] as Tool))
    const why = reason('halts', 'halted', textOf(halt), { message: halt.reason, since: halt.at })
    return isEmpty(bits) ? [] : [{ halt, effect: { outcome: 'wait', bits, reason: () => why } }]
  })
}

/** Holds back the tools that are halted for this caller. */
export function haltEffects(index: readonly HaltEffect[], caller: Caller): Effect[] {
  return index.filter(({ halt }) => stopsCaller(halt, caller)).map(({ effect }) => effect)
}

/** Holds back everything, because it is unknown whether anything is halted. */
export function unknownHalts(snapshot: Toolset): Effect {
  const why = reason('halts', 'halted', 'the state store has not said yet what is halted', {
    message: 'it is not known yet what is halted',
  })
  return { outcome: 'wait', bits: bitsWhere(snapshot.size, () => true), reason: () => why }
}

export function stopsTool({ selector }: Stopping, tool: Tool): boolean {
  return selector === undefined || matchesSelector(selector, tool, 'possible')
}

/** An absent field matches everyone: a halt of a user applies in every tenant unless it names one. */
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

/** The groups and tools that a user has switched off for themselves. */
export interface SwitchedOff {
  readonly groups: readonly string[]
  /** Tool ids. */
  readonly tools: readonly string[]
}

const TOLD = {
  message: 'the user has switched it off',
  suggestion: 'The user can switch it on again in the preferences.',
}

/**
 * Returns a function that holds back what a user has switched off. Users with the same switches share effects, and so share
 * decisions.
 */
export function createPreferenceEffects(snapshot: Toolset, groups: GroupSelectors): (off: SwitchedOff) => Effect[] {
  const ofGroups = new Map<string, Effect | undefined>()
  const ofTools = new Map<string, Effect | undefined>()
  const groupEffect = (group: string) => {
    const members = groups.get(group) ?? []
    const bits = bitsWhere(snapshot.size, (i) =>
      members.some((member) => matchesSelector(member, snapshot.tools[i] as Tool, 'possible')),
    )
    return toEffect(
      bits,
      reason('preferences', 'switched_off', `the user has switched off the group ${group}`, { ...TOLD, group }),
    )
  }
  const toolEffect = (id: string) => {
    const bits = noBits(snapshot.size)
    const at = snapshot.indexOf(id)
    if (at !== -1) setBit(bits, at)
    return toEffect(bits, reason('preferences', 'switched_off', 'the user has switched it off', TOLD))
  }
  return (off) => [
    ...off.groups.flatMap((group) => known(ofGroups, group, groupEffect) ?? []),
    ...off.tools.flatMap((id) => known(ofTools, id, toolEffect) ?? []),
  ]
}

function toEffect(bits: Bits, why: Reason): Effect | undefined {
  return isEmpty(bits) ? undefined : { outcome: 'wait', bits, reason: () => why }
}

function known<Name>(
  effects: Map<Name, Effect | undefined>,
  name: Name,
  make: (name: Name) => Effect | undefined,
): Effect | undefined {
  if (!effects.has(name)) effects.set(name, make(name))
  return effects.get(name)
}

/** Returns a function that holds back the tools of missing connections: one effect for each answer. */
export function createConnectionEffects(snapshot: Toolset): (missing: readonly MissingConnection[]) => Effect[] {
  const effects = new Map<MissingConnection, Effect | undefined>()
  const toHeldBack = ({ namespace, text, ...more }: MissingConnection) =>
    toEffect(
      bitsWhere(snapshot.size, (i) => (snapshot.tools[i] as Tool).namespace === namespace),
      reason('connections', 'not_connected', text, more),
    )
  return (missing) => missing.flatMap((one) => known(effects, one, toHeldBack) ?? [])
}

/** Why a tool is held back. Shown to people. */
export interface Held {
  readonly text: string
  /** The text for the caller, without any text of an upstream. */
  readonly message?: string | undefined
  readonly suggestion?: string | undefined
  /** Wall-clock milliseconds. */
  readonly since?: number | undefined
}

/** The state of definitions: those that differ from the accepted ones, and those with hidden content. */
interface PinStates {
  suspended(tool: Tool): Held | undefined
  quarantined(tool: Tool): Held | undefined
}

/** Suspends tools whose definition nobody has accepted, and hides tools in quarantine. */
export function pinEffects(snapshot: Toolset, pins: PinStates): Effect[] {
  return [
    ...holdBack(snapshot, 'tool_quarantined', (tool) => pins.quarantined(tool)),
    ...holdBack(snapshot, 'tool_suspended', (tool) => pins.suspended(tool)),
  ]
}

function holdBack(
  snapshot: Toolset,
  code: 'tool_quarantined' | 'tool_suspended',
  heldOf: (tool: Tool) => Held | undefined,
): Effect[] {
  const bits = noBits(snapshot.size)
  // Compared by id, because another snapshot has its own object for the same tool.
  const all = new Map<string, Held>()
  for (const [index, tool] of snapshot.tools.entries()) {
    const held = heldOf(tool)
    if (!held) continue
    setBit(bits, index)
    all.set(tool.id, held)
  }
  if (all.size === 0) return []
  const reasonOf = ({ id }: Tool) => {
    const { text, ...more } = all.get(id) ?? { text: 'its definition is held back' }
    return reason('pins', code, text, more)
  }
  return [{ outcome: code === 'tool_quarantined' ? 'deny' : 'wait', bits, reason: reasonOf }]
}
