import { explainsWhy } from '../decision/message.ts'
import { howToOpen } from '../layers/locks.ts'
import { addBits, membersOf } from '../tools/bits.ts'
import type { Groups } from '../tools/groups.ts'
import { reasonsAt, type Evaluation } from './evaluation.ts'

/**
 * Gives what the instructions should tell the model about tools that it does not see: the messages of denials whose
 * authors chose to speak, in the order of the policies, and the hints of locked groups. Each once.
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
        // What the model cannot open is none of its business.
        if (code === 'group_locked' && group !== undefined && suggestion !== undefined) locked.add(group)
      }
    } else if (explainsWhy(denials)) {
      for (const { message, order } of denials)
        messages.set(message as string, Math.min(order, messages.get(message as string) ?? order))
    }
  }
  const told = [...messages].toSorted(([a, x], [b, y]) => x - y || (a < b ? -1 : 1)).map(([message]) => message)
  return Object.freeze([...told, ...[...locked].toSorted().map((name) => lockNotice(name, groups))])
}

function lockNotice(name: string, groups: Groups): string {
  const group = groups.locked.get(name)
  if (!group) return `The group ${name} is locked.`
  return [`${group.title ?? name}:`, group.hint, howToOpen(name, group.unlock)]
    .filter((part) => part !== undefined)
    .join(' ')
}
