import type { Effect } from '../layers/effect.ts'
import { reason } from '../decision/reason.ts'
import { addBits, type Bits, bitsWhere, hasBit, invertBits, isEmpty, membersOf } from '../tools/bits.ts'
import { indexOfRequestTool, REQUEST_TOOL_ID } from '../tools/own-tool.ts'
import type { Tool } from '../tools/tool.ts'
import { evaluate, type Evaluation } from './evaluation.ts'

/** Gives the evaluation of a view: `request_tools` is hidden where it opens nothing, and no lock says to call what is not there. */
export function resolveRequestTool(evaluation: Evaluation): Evaluation {
  let offered = known.get(evaluation)
  if (!offered) known.set(evaluation, (offered = withoutRequestHints(hideUnneeded(evaluation))))
  return offered
}

/** So that those who share a evaluation share what is listed too. */
const known = new WeakMap<Evaluation, Evaluation>()

/** Takes the words "call request_tools" from each lock that this caller cannot open so. */
export function withoutRequestHints(evaluation: Evaluation): Evaluation {
  const requests = evaluation.effects.filter(isRequestLock)
  if (requests.length === 0) return evaluation
  const at = evaluation.snapshot.indexOf(REQUEST_TOOL_ID)
  const isListed = at !== -1 && hasBit(evaluation.visible.bits, at)
  const told = new Set(isListed ? openableOf(evaluation) : [])
  if (requests.every((effect) => told.has(effect))) return evaluation
  const effects = evaluation.effects.map((effect) =>
    isRequestLock(effect) && !told.has(effect) ? silenced(effect) : effect,
  )
  return { ...evaluation, effects }
}

/** Gives the groups that a call of `request_tools` opens: those of which this caller could then use something. */
export function openableIn(evaluation: Evaluation): readonly string[] {
  return openableOf(evaluation).flatMap(({ lock }) => (lock ? [lock.group] : []))
}

/** Gives the ids of what is listed from the next step on: what one step alone sets aside is there again. */
export function idsOfNextStep({ snapshot, effects }: Evaluation): readonly string[] {
  const held = heldBy(effects, snapshot.size, (effect) => effect.outcome !== 'ask' && !effect.isOfStep)
  return membersOf(invertBits(held, snapshot.size)).map((i) => snapshot.ids[i] as string)
}

function hideUnneeded(evaluation: Evaluation): Evaluation {
  const { snapshot } = evaluation
  const at = indexOfRequestTool(snapshot)
  if (at === -1 || openableOf(evaluation).length > 0) return evaluation
  const told = reason('locks', 'nothing_to_open', 'no group is locked that this caller could open with it')
  return evaluate(
    snapshot,
    [{ outcome: 'deny', bits: bitsWhere(snapshot.size, (i) => i === at), reason: () => told }],
    evaluation,
  )
}

function openableOf({ snapshot, effects }: Evaluation): readonly Effect[] {
  const requests = effects.filter(isRequestLock)
  if (requests.length === 0) return []
  const held = heldBy(effects, snapshot.size, (effect) => effect.outcome !== 'ask' && !effect.lock && !effect.isOfStep)
  const free = invertBits(held, snapshot.size)
  return requests.filter(({ bits }) => membersOf(bits).some((i) => hasBit(free, i)))
}

function heldBy(effects: readonly Effect[], size: number, holds: (effect: Effect) => boolean): Bits {
  const held = bitsWhere(size, () => false)
  for (const effect of effects) if (holds(effect)) addBits(held, effect.bits)
  return held
}

function isRequestLock({ lock, bits }: Effect): boolean {
  return lock?.unlock === 'request' && !isEmpty(bits)
}

function silenced(effect: Effect): Effect {
  return {
    ...effect,
    reason(tool: Tool) {
      const { suggestion: _, ...told } = effect.reason(tool)
      return told
    },
  }
}
