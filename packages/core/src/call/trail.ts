import { shownField } from '../audit/operands.ts'
import { fieldsOf, originsOf } from '../decide/reads-of.ts'
import type { RunFacts } from '../history/facts.ts'
import type { ApprovalTrail, MaybePromise } from '../ports/ports.ts'
import type { Tool } from '../tools/tool.ts'
import { chain } from '@toolgate/values'
import type { Attempt } from './attempt.ts'

const MAX_LABELS = 16
const MAX_SENDS = 32

/** Returns what an approver should know about the run of a call; `undefined` if no rule reads runs. */
export function trailOf(attempt: Attempt, tool: Tool): MaybePromise<ApprovalTrail | undefined> {
  const { ports, view, request } = attempt
  const histories = ports.histories.shown
  const { rules } = histories
  if (!rules) return undefined
  const { facts: ofRules, shadowFacts } = attempt.history ?? {}
  const facts = histories === ports.histories ? ofRules : shadowFacts
  const toTrail = (known: RunFacts | undefined) => createTrail(attempt, tool, known, rules.readsOrigin)
  if (facts) return toTrail(facts)
  const unknown = (error: unknown) => {
    ports.onFault(error)
    return toTrail(undefined)
  }
  try {
    // A run without a history has made no calls.
    const read = chain(histories.read(view.caller, request.run), (history) =>
      history ? toTrail(history.facts) : { read: [], sends: sendsOf(attempt, tool, undefined) },
    )
    return read instanceof Promise ? read.catch(unknown) : read
  } catch (error) {
    return unknown(error)
  }
}

function createTrail(attempt: Attempt, tool: Tool, facts: RunFacts | undefined, readsOrigin: boolean): ApprovalTrail {
  if (!facts || facts.isUnknown) return { read: [], sends: sendsOf(attempt, tool, undefined), isUnknown: true }
  const read = facts.labels.slice(0, MAX_LABELS).map((label) => ({ label, calls: facts.raisedBy?.(label) ?? [] }))
  return { read, sends: sendsOf(attempt, tool, readsOrigin ? facts : undefined) }
}

function sendsOf({ input, ports }: Attempt, tool: Tool, facts: RunFacts | undefined): ApprovalTrail['sends'] {
  const found = originsOf(fieldsOf(tool, input), facts ?? { origin: () => 'unknown' })
  return found.slice(0, MAX_SENDS).map(({ field = '', value, origin }) => ({
    field,
    value: shownField(field, value, ports.redactor),
    ...(facts && { origin }),
  }))
}

const ORIGIN_TEXTS: Readonly<Record<NonNullable<ApprovalTrail['sends'][number]['origin']>, string>> = {
  user: 'which the user named',
  trusted: 'from a trusted tool',
  unknown: 'which neither the user nor a trusted tool named',
  untrusted: 'which may come from untrusted output',
}

/** Returns a trail as lines for people. */
export function trailLines({ read, sends, isUnknown }: ApprovalTrail): readonly string[] {
  const lines = read.map(({ label, calls }) => {
    const by = calls.map(({ tool, atMs }) => `${tool} at ${new Date(atMs).toISOString()}`).join(', ')
    return `read ${by === '' ? 'something' : by}: ${label}`
  })
  const sent = sends.map(
    ({ field, value, origin }) =>
      `sends to ${value} (${field})${origin === undefined ? '' : `, ${ORIGIN_TEXTS[origin]}`}`,
  )
  return [...(isUnknown ? ['it is unknown what the run has done'] : lines), ...sent]
}
