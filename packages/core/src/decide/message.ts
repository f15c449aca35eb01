import { adviceOn, because, type NameOf } from './because.ts'
import { spokenWait } from './durations.ts'
import type { ItemKind } from '../tools/tool-id.ts'
import { nearestNames } from '@toolgate/values'
import { type Decision, type Reason, REASONS } from './decision.ts'

const MAX_ECHO_LENGTH = 64
const MAX_NAMES = 20

/** The names that a refusal may contain, as the caller knows them. */
export interface Names {
  /** The name as spelled in the request. */
  readonly asked: string
  /** Default: a tool. */
  readonly kind?: ItemKind | undefined
  /** Returns the caller's name of an item; `undefined` for an item that they cannot see. Absent: the refusal names no items. */
  readonly nameOf?: NameOf | undefined
  /** Returns the names of all visible tools. Not called for other kinds, which can be very many. */
  visible(): readonly string[]
}

/**
 * Returns the text for the model of a decision that is not an allow.
 *
 * Denials come first. Other reasons are included only for tools without a denial. A denied tool reads like an unknown one,
 * unless the author of every denial wrote a message.
 */
export function messageFor({ reasons }: Decision, names: Names): string {
  const denials = denialsOf(reasons)
  if (denials.length > 0) return messageOfDenial(denials, names)
  const deciding = reasons[0] as Reason
  const tool = echo(names.asked)
  switch (REASONS[deciding.code].message) {
    case 'limited':
      return `TOOL_CALL_BLOCKED: ${textOfLimit(deciding)}`
    case 'unavailable':
      return [`${tool} is unavailable: ${deciding.message ?? deciding.text}.`, deciding.suggestion]
        .filter(Boolean)
        .join(' ')
    case 'locked':
      return [`${tool} is locked.`, deciding.suggestion].filter(Boolean).join(' ')
    case 'suspended':
      return [`${tool} is suspended: ${deciding.message ?? deciding.text}.`, deciding.suggestion]
        .filter(Boolean)
        .join(' ')
    case 'busy':
      return `${tool} is busy: ${deciding.message ?? deciding.text}. Try again later.`
    case 'inactive':
      return `${tool} is not active in this step.${listed(names)}`
    default:
      return [`Waiting for approval of ${tool}.`, ...new Set(reasons.map((one) => whyAsked(one, names)))]
        .filter((text) => text !== '')
        .join(' ')
  }
}

/** A limit with costs states what is left of it. Its author may have written the whole text. */
function textOfLimit({ limit, message, authored, resetMs }: Reason): string {
  if (authored && message !== undefined) return message
  const again = resetMs === undefined ? '' : ` Try again ${spokenWait(resetMs)}.`
  return `rate limited (${limit}${message === undefined ? '' : `: ${message}`}).${again}`
}

/** Returns whether the caller sees the same text as for an unknown name. */
export function readsAsUnknown({ reasons }: Decision): boolean {
  const denials = denialsOf(reasons)
  return denials.length > 0 && !explainsWhy(shownOf(denials))
}

function denialsOf(reasons: readonly Reason[]): readonly Reason[] {
  return reasons.filter(({ outcome }) => outcome === 'deny')
}

/** Returns the denials that hide the item, or all denials if none hides it. */
function shownOf(denials: readonly Reason[]): readonly Reason[] {
  const hidden = denials.filter(isHidden)
  return hidden.length > 0 ? hidden : denials
}

/** Returns the message of a denial that the model may see: the caller saw the tool, or the author wrote a message. */
function messageOfDenial(denials: readonly Reason[], names: Names): string {
  const shown = shownOf(denials)
  if (explainsWhy(shown))
    return `TOOL_CALL_BLOCKED: ${[...new Set(shown.map((denial) => textOfDenial(denial, names)))].join(' ')}`
  return `${NOUNS[names.kind ?? 'tool']} "${echo(names.asked)}" is not available.${listed(names)}`
}

/** Returns whether the caller may know why: the author of every denial wrote a message. */
export function explainsWhy(denials: readonly Reason[]): boolean {
  return denials.every((denial) => messageOf(denial) !== undefined)
}

/** A condition over the input fails only for tools that the caller sees, so its error is no secret. */
function isHidden({ layer, code }: Reason): boolean {
  return layer !== 'input' && REASONS[code].message === 'hidden'
}

function messageOf(denial: Reason): string | undefined {
  if (isHidden(denial)) return denial.message
  return denial.message ?? 'this input is not allowed'
}

/** A denial because of the run's history says so, in addition to the author's message. */
function textOfDenial(denial: Reason, names: Names): string {
  const { message, read = [] } = denial
  if (read.length === 0) return messageOf(denial) as string
  return [message, because(read, names.nameOf), message === undefined && adviceOn(read)].filter(Boolean).join(' ')
}

/** Returns the author's message, and the history of the run that counted. */
function whyAsked({ outcome, message, read = [] }: Reason, names: Names): string {
  if (outcome !== 'ask') return ''
  return [message, because(read, names.nameOf)].filter(Boolean).join(' ')
}

/** A template counts as a resource until its kind is known. */
const NOUNS = { tool: 'Tool', resource: 'Resource', template: 'Resource', prompt: 'Prompt' } as const

function listed(names: Names): string {
  if (names.kind !== undefined && names.kind !== 'tool') return ''
  const nearest = nearestNames(names.asked.slice(0, MAX_ECHO_LENGTH), names.visible(), MAX_NAMES)
  return ` Available tools: ${nearest.length > 0 ? nearest.join(', ') : '(none)'}.`
}

function echo(name: string): string {
  return (name.length > MAX_ECHO_LENGTH ? `${name.slice(0, MAX_ECHO_LENGTH)}…` : name).toWellFormed()
}
