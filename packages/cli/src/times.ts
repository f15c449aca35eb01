const UNITS_MS: ReadonlyMap<string, number> = new Map([
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
  ['w', 604_800_000],
])

/** Returns the milliseconds of a unit: `s`, `m`, `h`, `d` or `w`. */
export function unitMs(unit: string): number {
  return UNITS_MS.get(unit) ?? Number.NaN
}

const TIME = /^(\d{4}-\d{2}-\d{2})(?:T[\d:.]+(?:Z|[+-]\d{2}:\d{2}))?$/

/**
 * Returns the milliseconds since 1970 of a date or an RFC 3339 time, or `undefined` for any other text, such as
 * 2026-02-30.
 */
export function parseTime(text: string): number | undefined {
  const [, date = ''] = TIME.exec(text) ?? []
  const [ms, dayMs] = [Date.parse(text), Date.parse(date)]
  // Date.parse accepts the 30th of February as a day in March.
  if (Number.isNaN(ms) || Number.isNaN(dayMs)) return undefined
  return new Date(dayMs).toISOString().startsWith(date) ? ms : undefined
}

const WEEKDAYS = ['sunday', 'monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday']
const AGE = /^(\d{1,9}) ?([smhdw])(?: ago)?$/
/** A day, and optionally a time of day, in local time. */
const LOCAL = /^(?:(\d{4}-\d{2}-\d{2})|([a-z]+))?(?:(?:^|(?<=.)[ t])(\d{1,2}):(\d{2})(?::(\d{2}))?)?$/

/**
 * Returns the milliseconds since 1970 of a moment as people write it, or `undefined` for any other text: an RFC 3339
 * time, an age (`2h`), or a day in local time (`today`, `yesterday`, `monday`, `2026-11-21`), with or without a time of
 * day. A weekday is the latest one, and a time alone is of today.
 */
export function parseMoment(text: string, now: Date): number | undefined {
  const words = text.trim().toLowerCase()
  const [, count, unit = ''] = AGE.exec(words) ?? []
  if (count !== undefined) return now.getTime() - Number(count) * unitMs(unit)
  if (words === 'now') return now.getTime()
  const [match, date, word, hours = '0', minutes = '0', seconds = '0'] = LOCAL.exec(words) ?? []
  if (!match) return parseTime(text)
  const day = date === undefined ? dayOfWord(word ?? 'today', now) : dayOfDate(date)
  const [h, m, s] = [hours, minutes, seconds].map(Number) as [number, number, number]
  if (day === undefined || h > 23 || m > 59 || s > 59) return undefined
  day.setHours(h, m, s)
  return day.getTime()
}

/** Returns the start of a day in local time. */
function dayOfWord(word: string, now: Date): Date | undefined {
  const ago = word === 'today' ? 0 : word === 'yesterday' ? 1 : daysSince(WEEKDAYS.indexOf(word), now)
  return ago === undefined ? undefined : new Date(now.getFullYear(), now.getMonth(), now.getDate() - ago)
}

function daysSince(weekday: number, now: Date): number | undefined {
  return weekday < 0 ? undefined : (now.getDay() - weekday + 7) % 7
}

function dayOfDate(date: string): Date | undefined {
  if (parseTime(date) === undefined) return undefined
  const [year = 0, month = 1, day = 1] = date.split('-').map(Number)
  return new Date(year, month - 1, day)
}

/** Returns a time as a local day and a local time of day: `2026-11-21`, `09:00:00`. */
export function localTime(at: Date): readonly [day: string, time: string] {
  const two = (value: number): string => String(value).padStart(2, '0')
  const day = [at.getFullYear(), two(at.getMonth() + 1), two(at.getDate())].join('-')
  return [day, [at.getHours(), at.getMinutes(), at.getSeconds()].map(two).join(':')]
}

/** Returns the name of the local time zone at a time: `UTC` or `UTC+02:00`. */
export function zoneOf(at: Date): string {
  const ahead = -at.getTimezoneOffset()
  if (ahead === 0) return 'UTC'
  const [hours, minutes] = [Math.floor(Math.abs(ahead) / 60), Math.abs(ahead) % 60].map((part) =>
    String(part).padStart(2, '0'),
  )
  return `UTC${ahead < 0 ? '-' : '+'}${hours}:${minutes}`
}
