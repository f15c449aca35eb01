import { checkShape, ConfigError, didYouMean, shapeOf } from '@toolgate/values'
import { spokenWait, spokenWindow } from '../decide/durations.ts'

/** How a limit says its amounts, and what it says when it refuses a call. */
export interface LimitWords {
  /**
   * What `max` and `cost` count: `searches`, or `{ name: 'EUR', per: 100 }` if 100 of them are one EUR. Texts then say
   * `90.00 EUR` for 9000. `per` is 10, 100 and so on up to 10^9.
   */
  readonly unit?: LimitUnit | undefined
  /**
   * The text that replaces the usual one for the caller, of at most 500 characters. `{cost}`, `{left}`, `{max}` and `{wait}`
   * stand for what the call costs, what is left, the whole limit, and `in about 3 hours`. Without `{wait}`, a sentence says
   * when to try again.
   */
  readonly message?: string | undefined
}

type LimitUnit = string | { readonly name: string; readonly per?: number | undefined }

/** The checked words of a limit. */
export interface ParsedWords {
  readonly unit: ParsedUnit | undefined
  readonly message: string | undefined
}

/** A checked unit. */
export interface ParsedUnit {
  readonly name: string
  /** How many decimals an amount has. */
  readonly places: number
}

const UNIT = shapeOf<Exclude<LimitUnit, string>>({ name: true, per: true }, 'key')
const MAX_NAME = 40
const MAX_MESSAGE = 500
const MAX_PLACES = 9
const POWERS = Array.from({ length: MAX_PLACES + 1 }, (_, places) => 10 ** places)
const CONTROL = /[\p{Cc}\p{Zl}\p{Zp}]/u
const PLACES = ['cost', 'left', 'max', 'wait'] as const
const PLACE = /\{(\w+)\}/g

/**
 * Checks the unit and the message of a limit; `undefined` if it has neither.
 *
 * @throws {ConfigError} naming the invalid field
 */
export function parseWords(path: string, { unit, message }: LimitWords, hasCost: boolean): ParsedWords | undefined {
  if (unit === undefined && message === undefined) return undefined
  return {
    unit: unit === undefined ? undefined : parseUnit(`${path}.unit`, unit, hasCost),
    message: message === undefined ? undefined : checkMessage(`${path}.message`, message),
  }
}

function parseUnit(path: string, unit: LimitUnit, hasCost: boolean): ParsedUnit {
  if (typeof unit === 'string') return { name: checkName(path, unit), places: 0 }
  if (typeof unit !== 'object' || unit === null || Array.isArray(unit))
    throw new ConfigError(path, 'must be a name, or an object as { name: "EUR", per: 100 }')
  checkShape(path, unit, UNIT)
  const { name, per = 1 } = unit
  const places = POWERS.indexOf(per)
  if (places === -1)
    throw new ConfigError(`${path}.per`, `must be 10, 100 and so on up to 10^${MAX_PLACES}, not ${per}`)
  if (places > 0 && !hasCost)
    throw new ConfigError(`${path}.per`, 'has no meaning without a "cost": calls are counted whole')
  return { name: checkName(`${path}.name`, name), places }
}

function checkName(path: string, name: unknown): string {
  if (typeof name !== 'string' || name.trim() === '' || name.length > MAX_NAME || CONTROL.test(name))
    throw new ConfigError(path, `must be a name of 1 to ${MAX_NAME} characters on one line`)
  return name.trim()
}

function checkMessage(path: string, message: unknown): string {
  if (typeof message !== 'string' || message.trim() === '' || message.length > MAX_MESSAGE)
    throw new ConfigError(path, `must be a text of 1 to ${MAX_MESSAGE} characters`)
  for (const [, name = ''] of message.matchAll(PLACE))
    if (!PLACES.some((place) => place === name))
      throw new ConfigError(
        path,
        `{${name}} stands for nothing${didYouMean(name, PLACES) || `; write {${PLACES.join('}, {')}}`}`,
      )
  return message.trim()
}

/** Returns the words as they can be written again. */
export function writtenWords(words: ParsedWords | undefined): LimitWords {
  if (!words) return {}
  const { unit, message } = words
  const written = unit && (unit.places === 0 ? unit.name : { name: unit.name, per: 10 ** unit.places })
  return { ...(written && { unit: written }), ...(message !== undefined && { message }) }
}

/** Returns an amount of a limit with its unit: `90.00 EUR`. */
export function amountText(amount: number, words: ParsedWords | undefined): string {
  const unit = words?.unit
  return unit ? `${decimal(amount, unit.places)} ${unit.name}` : `${amount}`
}

/** Writes whole units with decimals, without rounding: `9000` with two places is `90.00`. */
function decimal(amount: number, places: number): string {
  if (places === 0) return `${amount}`
  const digits = String(amount).padStart(places + 1, '0')
  return `${digits.slice(0, -places)}.${digits.slice(-places)}`
}

/** Returns a limit as its refusals name it: `20/60`, or `500.00 EUR in 24 hours` if it has a unit. */
export function labelOf(max: number, windowMs: number, words: ParsedWords | undefined): string {
  return words?.unit ? `${amountText(max, words)} in ${spokenWindow(windowMs)}` : `${max}/${windowMs / 1000}`
}

/** A call that a limit refuses, in the numbers of the limit. */
interface RefusedAmounts {
  readonly cost: number
  readonly left: number
  readonly max: number
  /** Absent if the call can never fit. */
  readonly resetMs: number | undefined
}

/** Returns what a call costs and what is left. */
export function costText({ cost, left, max }: RefusedAmounts, words: ParsedWords | undefined): string {
  const costs = `this call costs ${amountText(cost, words)}, and`
  if (cost > max) return `${costs} ${amountText(max, words)} is the whole limit`
  return `${costs} ${decimal(Math.max(0, left), words?.unit?.places ?? 0)} of ${amountText(max, words)} are left`
}

/** Returns the author's message with its amounts, and when to try again if it does not say so itself. */
export function authorsText(message: string, refused: RefusedAmounts, words: ParsedWords): string {
  const wait = refused.resetMs === undefined ? 'with less' : spokenWait(refused.resetMs)
  const amounts = new Map<string, string>([
    ['cost', amountText(refused.cost, words)],
    ['left', amountText(Math.max(0, refused.left), words)],
    ['max', amountText(refused.max, words)],
    ['wait', wait],
  ])
  const text = message.replaceAll(PLACE, (whole, name: string) => amounts.get(name) ?? whole)
  if (message.includes('{wait}')) return text
  return `${text}${/[.!?\u2026]$/.test(text) ? '' : '.'} Try again ${wait}.`
}
