const UNITS_MS: ReadonlyMap<string, number> = new Map([
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
])

/** Returns the milliseconds of a unit: `s`, `m`, `h` or `d`. */
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
