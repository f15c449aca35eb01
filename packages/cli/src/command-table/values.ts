import { InvalidArgumentError } from 'commander'
import type { Since } from '../commands/what-if.ts'
import { parseMoment } from '../times.ts'

export const MAX_SEQ: number = Number.MAX_SAFE_INTEGER

export function repeated(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value]
}

/** Parses a moment such as `7d`, `yesterday` or an RFC 3339 time. Returns milliseconds since 1970. */
export function timeAgo(text: string): number {
  const ms = parseMoment(text, new Date())
  if (ms !== undefined && ms >= 0) return ms
  throw new InvalidArgumentError(
    'It is a time such as 2026-11-21T09:00:00Z, or in local time 2026-11-21, "2026-11-21 09:00", 09:00, today, yesterday or monday, or 90s, 15m, 2h, 7d or 2w ago, from 1970 on.',
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
