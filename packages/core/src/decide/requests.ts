import type { Mark } from '../layers/mark.ts'
import { reason } from '../decision/reason.ts'
import { addBits, type Bits, bitsWhere, hasBit, invertBits, isEmpty, membersOf } from '../tools/bits.ts'
import { indexOfRequestTool, REQUEST_TOOL_ID } from '../tools/own-tool.ts'
import type { Tool } from '../tools/tool.ts'
import { rule, type Ruling } from './ruling.ts'

/** Gives the ruling of a view: `request_tools` is hidden where it opens nothing, and no lock says to call what is not there. */
export function offerRequests(ruling: Ruling): Ruling {
  let offered = known.get(ruling)
  if (!offered) known.set(ruling, (offered = tellRequests(hideUnneeded(ruling))))
  return offered
}

/** So that those who share a ruling share what is listed too. */
const known = new WeakMap<Ruling, Ruling>()

/** Takes the words "call request_tools" from each lock that this caller cannot open so. */
export function tellRequests(ruling: Ruling): Ruling {
  const requests = ruling.marks.filter(isRequestLock)
  if (requests.length === 0) return ruling
  const at = ruling.snapshot.indexOf(REQUEST_TOOL_ID)
  const isListed = at !== -1 && hasBit(ruling.listing.visible, at)
  const told = new Set(isListed ? openableOf(ruling) : [])
  if (requests.every((mark) => told.has(mark))) return ruling
  const marks = ruling.marks.map((mark) => (isRequestLock(mark) && !told.has(mark) ? silenced(mark) : mark))
  return { ...ruling, marks }
}

/** Gives the groups that a call of `request_tools` opens: those of which this caller could then use something. */
export function openableIn(ruling: Ruling): readonly string[] {
  return openableOf(ruling).flatMap(({ lock }) => (lock ? [lock.group] : []))
}

/** Gives the ids of what is listed from the next step on: what one step alone sets aside is there again. */
export function idsOfNextStep({ snapshot, marks }: Ruling): readonly string[] {
  const held = heldBy(marks, snapshot.size, (mark) => mark.outcome !== 'ask' && !mark.isOfStep)
  return membersOf(invertBits(held, snapshot.size)).map((i) => snapshot.ids[i] as string)
}

function hideUnneeded(ruling: Ruling): Ruling {
  const { snapshot } = ruling
  const at = indexOfRequestTool(snapshot)
  if (at === -1 || openableOf(ruling).length > 0) return ruling
  const told = reason('locks', 'nothing_to_open', 'no group is locked that this caller could open with it')
  return rule(
    snapshot,
    [{ outcome: 'deny', bits: bitsWhere(snapshot.size, (i) => i === at), reason: () => told }],
    ruling,
  )
}

function openableOf({ snapshot, marks }: Ruling): readonly Mark[] {
  const requests = marks.filter(isRequestLock)
  if (requests.length === 0) return []
  const held = heldBy(marks, snapshot.size, (mark) => mark.outcome !== 'ask' && !mark.lock && !mark.isOfStep)
  const free = invertBits(held, snapshot.size)
  return requests.filter(({ bits }) => membersOf(bits).some((i) => hasBit(free, i)))
}

function heldBy(marks: readonly Mark[], size: number, holds: (mark: Mark) => boolean): Bits {
  const held = bitsWhere(size, () => false)
  for (const mark of marks) if (holds(mark)) addBits(held, mark.bits)
  return held
}

function isRequestLock({ lock, bits }: Mark): boolean {
  return lock?.unlock === 'request' && !isEmpty(bits)
}

function silenced(mark: Mark): Mark {
  return {
    ...mark,
    reason(tool: Tool) {
      const { suggestion: _, ...told } = mark.reason(tool)
      return told
    },
  }
}
