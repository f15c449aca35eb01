import { howToOpen } from './layers/groups.ts'
import { addBits, type Bits, bitsWhere, hasBit, invertBits, isEmpty, membersOf } from '../tools/bits.ts'
import type { Groups } from '../tools/groups.ts'
import { indexOfRequestTool, REQUEST_TOOL_ID } from '../tools/own-tool.ts'
import type { Tool } from '../tools/tool.ts'
import { reason } from './decision.ts'
import { type Effect, evaluate, type Evaluation, reasonsAt } from './evaluation.ts'
import { explainsWhy } from './message.ts'

/** Returns the evaluation of a view. Hides `request_tools` if it opens nothing, and then removes the hints to call it. */
export function resolveRequestTool(evaluation: Evaluation): Evaluation {
  let offered = known.get(evaluation)
  if (!offered) known.set(evaluation, (offered = withoutRequestHints(hideUnneeded(evaluation))))
  return offered
}

/** Callers who share an evaluation also share its listing. */
const known = new WeakMap<Evaluation, Evaluation>()

/** Removes the words "call request_tools" from each lock that this caller cannot open with it. */
export function withoutRequestHints(evaluation: Evaluation): Evaluation {
  const requests = evaluation.effects.filter(isRequestLock)
  if (requests.length === 0) return evaluation
  const at = evaluation.snapshot.indexOf(REQUEST_TOOL_ID)
  const isListed = at !== -1 && hasBit(evaluation.visible.bits, at)
  const shown = new Set(isListed ? openableOf(evaluation) : [])
  if (requests.every((effect) => shown.has(effect))) return evaluation
  const effects = evaluation.effects.map((effect) =>
    isRequestLock(effect) && !shown.has(effect) ? silenced(effect) : effect,
  )
  return { ...evaluation, effects }
}

/** Returns the groups that a call of `request_tools` opens: those that would give this caller a usable tool. */
export function openableIn(evaluation: Evaluation): readonly string[] {
  return openableOf(evaluation).flatMap(({ lock }) => (lock ? [lock.group] : []))
}

/** Returns the ids that are listed from the next step on, when the restrictions of the current step end. */
export function idsOfNextStep({ snapshot, effects }: Evaluation): readonly string[] {
  const held = heldBy(effects, snapshot.size, (effect) => effect.outcome !== 'ask' && !effect.isOfStep)
  return membersOf(invertBits(held, snapshot.size)).map((i) => snapshot.ids[i] as string)
}

function hideUnneeded(evaluation: Evaluation): Evaluation {
  const { snapshot } = evaluation
  const at = indexOfRequestTool(snapshot)
  if (at === -1 || openableOf(evaluation).length > 0) return evaluation
  const why = reason('locks', 'nothing_to_open', 'no group is locked that this caller could open with it')
  return evaluate(
    snapshot,
    [{ outcome: 'deny', bits: bitsWhere(snapshot.size, (i) => i === at), reason: () => why }],
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
      const { suggestion: _, ...rest } = effect.reason(tool)
      return rest
    },
  }
}

/**
 * Returns texts for the instructions about hidden tools: the messages that authors wrote for denials, in the order of the
 * policies, and the hints of locked groups. Each text once.
 */
export function noticesOf(evaluation: Evaluation, groups: Groups): readonly string[] {
  const hidden = evaluation.deny.slice()
  addBits(hidden, evaluation.wait)
  const messages = new Map<string, number>()
  const locked = new Set<string>()
  for (const index of membersOf(hidden)) {
    const reasons = reasonsAt(evaluation, index)
    const denials = reasons.filter(({ outcome }) => outcome === 'deny')
    if (denials.length === 0) {
      for (const { code, group, suggestion } of reasons) {
        // The model need not know about groups that it cannot open.
        if (code === 'group_locked' && group !== undefined && suggestion !== undefined) locked.add(group)
      }
    } else if (explainsWhy(denials)) {
      for (const { message, order } of denials)
        if (message !== undefined) messages.set(message, Math.min(order, messages.get(message) ?? order))
    }
  }
  const texts = [...messages].toSorted(([a, x], [b, y]) => x - y || (a < b ? -1 : 1)).map(([message]) => message)
  return Object.freeze([...texts, ...[...locked].toSorted().map((name) => lockNotice(name, groups))])
}

function lockNotice(name: string, groups: Groups): string {
  const group = groups.locked.get(name)
  if (!group) return `The group ${name} is locked.`
  return [`${group.title ?? name}:`, group.hint, howToOpen(name, group.unlock)]
    .filter((part) => part !== undefined)
    .join(' ')
}
