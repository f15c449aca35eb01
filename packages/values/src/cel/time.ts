import { spend, type Work } from '../work.ts'
import { CelError, Duration, Timestamp } from './values.ts'

const SECOND = 1_000_000_000n
const MIN_TIMESTAMP = -62_135_596_800n * SECOND
const MAX_TIMESTAMP = 253_402_300_800n * SECOND - 1n

/** Returns a timestamp. @throws {CelError} outside the years 1 to 9999 */
export function toTimestamp(nanos: bigint): Timestamp {
  if (nanos < MIN_TIMESTAMP || nanos > MAX_TIMESTAMP) throw new CelError('timestamp out of range')
  return new Timestamp(nanos)
}

/**
 * Returns a duration. @throws {CelError} beyond 64-bit nanoseconds, about 292 years, as in the reference implementation of
 * CEL
 */
export function toDuration(nanos: bigint): Duration {
  if (nanos !== BigInt.asIntN(64, nanos)) throw new CelError('duration out of range')
  return new Duration(nanos)
}

/** Longer than any timestamp, and short enough for a pattern. */
const MAX_TIMESTAMP_TEXT = 40
const RFC_3339 = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:Z|([+-])(\d\d):(\d\d))$/

/** Parses RFC 3339. @throws {CelError} for any other text, and for a day that its month does not have */
export function parseTimestamp(text: string): Timestamp {
  const parts = text.length > MAX_TIMESTAMP_TEXT ? null : RFC_3339.exec(text)
  if (!parts) throw new CelError('timestamp() wants RFC 3339, such as 2026-02-28T12:00:00Z')
  const [, year, month, day, hour, minute, second, , , zoneHour = 0, zoneMinute = 0] = parts.map(Number) as [
    number,
    ...number[],
  ]
  const [, , , , , , , fraction = '', sign] = parts
  const at = new Date(0)
  at.setUTCFullYear(year ?? 0, (month ?? 0) - 1, day)
  const isDay = at.getUTCMonth() === (month ?? 0) - 1 && at.getUTCDate() === day
  const zone = Number.isNaN(zoneHour) ? 0 : (zoneHour * 60 + zoneMinute) * (sign === '-' ? -60 : 60)
  if (!isDay || (hour ?? 24) > 23 || (minute ?? 60) > 59 || (second ?? 60) > 59 || zoneHour > 23 || zoneMinute > 59)
    throw new CelError('timestamp() wants a day and a time that exist')
  const seconds = at.getTime() / 1000 + (hour ?? 0) * 3600 + (minute ?? 0) * 60 + (second ?? 0) - zone
  return toTimestamp(BigInt(seconds) * SECOND + BigInt(fraction.padEnd(9, '0')))
}

const UNITS: ReadonlyMap<string, bigint> = new Map([
  ['h', 3600n * SECOND],
  ['m', 60n * SECOND],
  ['s', SECOND],
  ['ms', 1_000_000n],
  ['us', 1000n],
  // The micro sign, and the Greek letter.
  ['\u00b5s', 1000n],
  ['\u03bcs', 1000n],
  ['ns', 1n],
])
const PART = /(\d*)(?:\.(\d*))?(h|ms|m|s|us|\u00b5s|\u03bcs|ns)/y
const PART_STEPS = 60
/** More digits than any duration has. */
const MAX_DIGITS = 19

/** Parses a duration such as `-1h30m` or `1.5s` in linear time. @throws {CelError} for any other text */
export function parseDuration(work: Work, text: string): Duration {
  spend(work, text.length)
  const sign = text.startsWith('-') ? -1n : 1n
  let at = /^[+-]/.test(text) ? 1 : 0
  if (text.slice(at) === '0') return new Duration(0n)
  let nanos = at < text.length ? 0n : wrongDuration()
  while (at < text.length) {
    PART.lastIndex = at
    const [part = '', whole = '', fraction = '', unit = ''] = PART.exec(text) ?? []
    const size = UNITS.get(unit)
    if (size === undefined || whole + fraction === '') return wrongDuration()
    nanos += nanosOf(whole, fraction, size)
    if (nanos > 2n ** 63n) throw new CelError('duration out of range')
    spend(work, PART_STEPS)
    at += part.length
  }
  return toDuration(sign * nanos)
}

function nanosOf(whole: string, fraction: string, size: bigint): bigint {
  const digits = whole.replace(/^0+/, '')
  if (digits.length > MAX_DIGITS) throw new CelError('duration out of range')
  const known = fraction.slice(0, MAX_DIGITS)
  return BigInt(digits) * size + (BigInt(known) * size) / 10n ** BigInt(known.length)
}

function wrongDuration(): never {
  throw new CelError("duration() wants numbers with units, such as '1h30m' or '1.5s'")
}

export function formatTimestamp({ nanos }: Timestamp): string {
  const [seconds, rest] = split(nanos)
  return `${new Date(Number(seconds) * 1000).toISOString().slice(0, -5)}${fractionOf(rest)}Z`
}

export function formatDuration({ nanos }: Duration): string {
  const size = nanos < 0n ? -nanos : nanos
  return `${nanos < 0n ? '-' : ''}${size / SECOND}${fractionOf(size % SECOND)}s`
}

function fractionOf(nanos: bigint): string {
  return nanos === 0n ? '' : `.${String(nanos).padStart(9, '0').replace(/0+$/, '')}`
}

/** Returns whole seconds, rounded down, and the nanoseconds beyond them. */
function split(nanos: bigint): readonly [seconds: bigint, rest: bigint] {
  const rest = ((nanos % SECOND) + SECOND) % SECOND
  return [(nanos - rest) / SECOND, rest]
}

export function secondsOf({ nanos }: Timestamp): bigint {
  return split(nanos)[0]
}

type TimestampPart =
  | 'FullYear'
  | 'Month'
  | 'Date'
  | 'DayOfMonth'
  | 'DayOfWeek'
  | 'DayOfYear'
  | 'Hours'
  | 'Minutes'
  | 'Seconds'
  | 'Milliseconds'

/**
 * Returns a part of a timestamp in a zone: a name such as `Europe/Berlin`, or an offset such as `+02:00`. @throws
 * {CelError} for an unknown zone
 */
export function partOfTimestamp(work: Work, part: TimestampPart, { nanos }: Timestamp, zone = 'UTC'): bigint {
  spend(work, PART_OF_TIME_STEPS)
  const [seconds, rest] = split(nanos)
  const ms = Number(seconds) * 1000
  const at = new Date(ms + offsetMs(work, zone, ms))
  switch (part) {
    case 'Milliseconds':
      return rest / 1_000_000n
    case 'DayOfMonth':
      return BigInt(at.getUTCDate() - 1)
    case 'DayOfWeek':
      return BigInt(at.getUTCDay())
    case 'DayOfYear':
      return BigInt(dayOfYear(at))
    default:
      return BigInt(at[`getUTC${part}`]())
  }
}

function dayOfYear(at: Date): number {
  const first = new Date(at)
  first.setUTCMonth(0, 1)
  return Math.round((at.getTime() - first.getTime()) / 86_400_000)
}

/** Steps for reading a part of a timestamp in a zone with an offset. */
const PART_OF_TIME_STEPS = 60
const OFFSET = /^([+-]?)(\d\d):(\d\d)$/

function offsetMs(work: Work, zone: string, ms: number): number {
  if (zone === 'UTC') return 0
  const [, sign, hours, minutes] = OFFSET.exec(zone) ?? []
  if (hours === undefined) return offsetOfName(work, zone, ms)
  if (Number(hours) > 23 || Number(minutes) > 59) throw new CelError('unknown time zone')
  return (Number(hours) * 60 + Number(minutes)) * (sign === '-' ? -60_000 : 60_000)
}

/** Creating a format takes about 50 µs, using it about 2 µs. */
const FORMAT_STEPS = 20_000
const ZONE_NAME = /^[A-Za-z][A-Za-z0-9_+-]{0,30}(?:\/[A-Za-z0-9_+-]{1,30}){0,2}$/

function offsetOfName(work: Work, zone: string, ms: number): number {
  spend(work, FORMAT_STEPS)
  if (!ZONE_NAME.test(zone)) throw new CelError('unknown time zone')
  const parts = new Map(
    formatOf(zone)
      .formatToParts(ms)
      .map(({ type, value }) => [type, Number(value)] as const),
  )
  const at = new Date(ms)
  const of = (name: Intl.DateTimeFormatPartTypes) => parts.get(name) ?? 0
  at.setUTCFullYear(of('year'), of('month') - 1, of('day'))
  at.setUTCHours(of('hour'), of('minute'), of('second'))
  return at.getTime() - ms
}

function formatOf(timeZone: string): Intl.DateTimeFormat {
  try {
    const number = 'numeric'
    return new Intl.DateTimeFormat('en-US', {
      timeZone,
      hourCycle: 'h23',
      year: number,
      month: number,
      day: number,
      hour: number,
      minute: number,
      second: number,
    })
  } catch (error) {
    throw new CelError('unknown time zone', { cause: error })
  }
}

export function partOfDuration(part: 'Hours' | 'Minutes' | 'Seconds' | 'Milliseconds', { nanos }: Duration): bigint {
  switch (part) {
    case 'Hours':
      return nanos / (3600n * SECOND)
    case 'Minutes':
      return nanos / (60n * SECOND)
    case 'Seconds':
      return nanos / SECOND
    default:
      return (nanos / 1_000_000n) % 1000n
  }
}
