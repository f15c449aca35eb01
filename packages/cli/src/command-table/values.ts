import { InvalidArgumentError } from 'commander'
import type { Since } from '../commands/what-if.ts'
import { parseTime, unitMs } from '../times.ts'

export const MAX_SEQ: number = Number.MAX_SAFE_INTEGER

export function repeated(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value]
}

/** Parses an RFC 3339 time or an age such as `7d`. Returns milliseconds since 1970. */
export function timeAgo(text: string): number {
  const [, count, unit = ''] = /^(\d{1,9})([smhd])$/.exec(text) ?? []
  const ms = count === undefined ? parseTime(text) : Date.now() - Number(count) * unitMs(unit)
  if (ms !== undefined && ms >= 0) return ms
  throw new InvalidArgumentError(
    'It is a time such as 2026-11-21T09:00:00Z or 2026-11-21, or 90s, 15m, 2h or 7d ago, from 1970 on.',
  )
}

export function sinceOf(text: string): Since {
  return { text, ms: timeAgo(text) }
}

/** Returns a parser of whole numbers in a range. */
export function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
    if (value >= min && value <= max) return value
    throw new InvalidArgumentError(`It is a whole number from ${min} to ${max}.`)
  }
}
